"""Attacks that pretend to be the sandbox: output, descriptors and files that look like replies."""

import struct

import pytest
from arena import Arena
from sandbox_fixtures import BACKEND, forged_reply

from coding_gym.errors import SandboxError
from coding_gym.sandbox.inside.wire import pack

LIE = pack({"exit_code": 0, "timed_out": False, "head_bytes": 6}, b"forged")
_OUTPUTS = {
    "a whole reply": LIE,
    "lengths of zero": struct.pack("<II", 0, 0) * 100,
    "an error of the set-up": pack({"error": {"step": "x", "errno": 1, "reason": "y"}}),
    "the mark of a cut": b"\n[... 99999 bytes omitted ...]\n",
    "no text": bytes(range(256)) * 10,
    "ends of input": b"\x04\x00\x1a\xff" * 100,
    "escapes of terminals": b"\x1b[2J\x1b]0;title\x07\x1b[6n\x1bc",
}
_REPLIES = {
    "nothing": b"",
    "long header": struct.pack("<II", 1 << 30, 0),
    "long body": struct.pack("<II", 2, 1 << 31) + b"{}",
    "types": pack({"head_bytes": "x", "num_bytes": []}),
    "nonsense": struct.pack("<II", 4, 0) + b"[[[[",
    "no text": struct.pack("<II", 3, 0) + b"\xff{}",
    "half an error": pack({"error": {"step": "x"}}),
    "half": pack({}, b"body")[:-1],
    "depth": struct.pack("<II", 200_000, 0) + b"[" * 200_000,
}


def test_forged_replies_reach_no_descriptor(arena: Arena) -> None:
    arena.assert_refused(
        f"""
        lie = bytes.fromhex('{LIE.hex()}')
        written = []
        for number in set(range(3, 100)) - {{HERE, GO}}:
            with suppress(OSError):
                written.append(os.write(number, lie))
        attempt('written nothing', lambda: written)
        attempt('send ENOTSOCK', lambda: socket.socket(fileno=os.dup(1)).send(lie))
        """
    )


def test_a_command_cannot_read_its_own_output(arena: Arena) -> None:
    arena.assert_refused(
        """
        back = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)
        attempt('back EAGAIN|nothing', lambda: os.read(back, 100))
        attempt('owner ESRCH|DONE', lambda: fcntl.fcntl(1, fcntl.F_SETOWN, FACTS['owner_pid']))
        attempt('size EPERM', lambda: fcntl.fcntl(1, 1031, 1 << 30))
        """
    )


def test_output_that_looks_like_a_reply_stays_output(arena: Arena) -> None:
    with arena.open() as attacker:
        for name, output in _OUTPUTS.items():
            attacker.write_file("output", output)
            result = attacker.run("cat output; cat output >&2; exit 3")
            assert result.output == (output * 2).decode("utf-8", "replace"), name
            assert (result.exit_code, result.timed_out, result.num_leftovers) == (3, False, 0)


@pytest.mark.parametrize("reply", _REPLIES.values(), ids=_REPLIES)
def test_the_owner_survives_forged_replies(arena: Arena, reply: bytes) -> None:
    with BACKEND.open(arena.spec) as attacker, forged_reply(attacker, reply):
        with pytest.raises(SandboxError):
            attacker.run("true")
        with pytest.raises(SandboxError):
            attacker.read_file("file")
    arena.assert_unharmed()
