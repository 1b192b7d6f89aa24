"""Pretending to be the sandbox: output, descriptors and exit codes that look like an answer."""

import json
import socket
import struct

import pytest
from arena import Arena
from attack import Attack
from missing_walls import backend_with

from coding_gym.errors import SandboxError
from coding_gym.sandbox.zygote import wire

_LIE = wire.pack({"exit_code": 0, "timed_out": False, "head_bytes": 6}, b"forged")

ATTACKS = (
    Attack(
        name="an answer on every descriptor",
        script=f"""
        lie = bytes.fromhex('{_LIE.hex()}')
        told = []
        for number in set(range(3, 100)) - {{HERE, GO}}:
            with suppress(OSError):
                told.append(os.write(number, lie))
        attempt('told', lambda: told)
        attempt('send', lambda: socket.socket(fileno=os.dup(1)).send(lie))
        """,
        held="told nothing, send ENOTSOCK",
    ),
    Attack(
        name="descriptors beyond those",
        script="""
        high = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        attempt('open', lambda: [n for n in range(3, high) if n not in (HERE, GO)
            and os.path.lexists(f'/proc/self/fd/{n}')])
        attempt('parent', lambda: os.listdir('/proc/1/fd'))
        """,
        held="open nothing, parent ENOENT",
    ),
    Attack(
        name="reading back what the owner has not seen",
        script="""
        back = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)
        attempt('back', lambda: os.read(back, 100))
        attempt('owner', lambda: fcntl.fcntl(1, fcntl.F_SETOWN, FACTS['owner_pid']))
        attempt('size', lambda: fcntl.fcntl(1, 1031, 1 << 30))
        """,
        held="back EAGAIN|nothing, owner ESRCH|DONE, size EPERM",
    ),
)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_no_descriptor_leads_to_the_owner(attack: Attack, arena: Arena) -> None:
    arena.hold_off(attack)


_OUTPUTS = {
    "a whole answer": _LIE,
    "many answers": _LIE * 1000,
    "lengths of zero": struct.pack("<II", 0, 0) * 100,
    "lengths beyond everything": struct.pack("<II", 2**32 - 1, 2**32 - 1),
    "an error of the set-up": wire.pack({"error": {"step": "x", "errno": 1, "reason": "y"}}),
    "the mark of a cut": b"\n[... 99999 bytes left out ...]\n",
    "no text at all": bytes(range(256)) * 10,
    "ends of input": b"\x04\x00\x1a\xff" * 100,
    "escapes of terminals": b"\x1b[2J\x1b]0;title\x07\x1b[6n\x1bc",
    "json": json.dumps({"exit_code": 0, "output": "forged"}).encode(),
}


@pytest.mark.parametrize("output", _OUTPUTS.values(), ids=_OUTPUTS.keys())
def test_output_is_output_whatever_it_looks_like(output: bytes, arena: Arena) -> None:
    with arena.open() as attacker:
        attacker.write_file("output", output)
        result = attacker.run("cat output; cat output >&2; exit 3")
        assert result.output == (output * 2).decode("utf-8", "replace")
        assert (result.exit_code, result.timed_out, result.num_leftovers) == (3, False, 0)


@pytest.mark.parametrize("code", [1, 124, 125, 126, 127, 137, 255])
def test_exit_codes_do_not_pass_for_a_timeout(code: int, arena: Arena) -> None:
    with arena.open() as attacker:
        result = attacker.run(f"exit {code}")
        assert (result.exit_code, result.timed_out) == (code, False)


def test_a_file_that_lies_about_its_size_is_read_as_it_is(arena: Arena) -> None:
    with arena.open() as attacker:
        attacker.run(
            "truncate -s 1M sparse; ln -s /proc/self/status status; mkfifo fifo; ln -s . l"
        )
        assert attacker.read_file("sparse") == bytes(1 << 20)
        assert attacker.read_file("status").startswith(b"Name:")
        with pytest.raises(OSError, match="larger than 10 bytes"):
            attacker.read_file("sparse", max_bytes=10)
        for path in ("fifo", "/dev/zero", "/proc/kmsg", "/dev/tty", "l/l/l/l", "l" * 300):
            with pytest.raises(OSError, match=r"."):
                attacker.read_file(path)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0" * 8,
        struct.pack("<II", 1 << 30, 0),
        struct.pack("<II", 2, 1 << 31) + b"{}",
        wire.pack({}),
        wire.pack({"head_bytes": "x", "num_bytes": []}),
        struct.pack("<II", 4, 0) + b"[[[[",
        struct.pack("<II", 200_000, 0) + b"[" * 200_000,
    ],
    ids=["nothing", "zeroes", "long-header", "long-body", "empty", "types", "nonsense", "depth"],
)
def test_an_owner_survives_a_first_process_that_lies(arena: Arena, answer: bytes) -> None:
    """What would come if the first process itself were taken over."""
    ours, theirs = socket.socketpair()
    with arena.backend.open(arena.spec) as attacker:
        channel = attacker._life.channel
        stream, channel._stream = channel._stream, ours
        theirs.sendall(answer)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(SandboxError):
            attacker.run("true")
        with pytest.raises(SandboxError):
            attacker.read_file("file")
        stream.close()
    theirs.close()
    arena.assert_unharmed()


def test_the_first_process_imports_nothing_from_where_it_serves(arena: Arena) -> None:
    tell = "def read(*_):\n    import sys\n    return repr(sys.path).encode()"
    with backend_with({"files": tell}) as backend, backend.open(arena.spec) as attacker:
        assert attacker.read_file("anything") == b"[]"
