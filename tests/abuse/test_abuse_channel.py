"""Pretending to be the sandbox: output, descriptors and exit codes that look like an answer."""

import json
import struct

import pytest
from arena import Arena
from attacks_channel import LIE
from checks import debug
from checks.debug import pack_reply

from coding_gym.errors import SandboxError

_OUTPUTS = {
    "a whole answer": LIE,
    "many answers": LIE * 1000,
    "lengths of zero": struct.pack("<II", 0, 0) * 100,
    "lengths beyond everything": struct.pack("<II", 2**32 - 1, 2**32 - 1),
    "an error of the set-up": pack_reply({"error": {"step": "x", "errno": 1, "reason": "y"}}),
    "the mark of a cut": b"\n[... 99999 bytes left out ...]\n",
    "no text at all": bytes(range(256)) * 10,
    "ends of input": b"\x04\x00\x1a\xff" * 100,
    "escapes of terminals": b"\x1b[2J\x1b]0;title\x07\x1b[6n\x1bc",
    "json": json.dumps({"exit_code": 0, "output": "forged"}).encode(),
}


def test_output_that_looks_like_a_reply_stays_output(arena: Arena) -> None:
    with arena.open() as attacker:
        for name, output in _OUTPUTS.items():
            attacker.write_file("output", output)
            result = attacker.run("cat output; cat output >&2; exit 3")
            assert result.output == (output * 2).decode("utf-8", "replace"), name
            assert (result.exit_code, result.timed_out, result.num_leftovers) == (3, False, 0)


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
        pack_reply({}),
        pack_reply({"head_bytes": "x", "num_bytes": []}),
        struct.pack("<II", 4, 0) + b"[[[[",
        struct.pack("<II", 200_000, 0) + b"[" * 200_000,
    ],
    ids=["nothing", "zeroes", "long-header", "long-body", "empty", "types", "nonsense", "depth"],
)
def test_owner_survives_forged_replies(arena: Arena, answer: bytes) -> None:
    """What would come if the first process itself were taken over."""
    with arena.backend.open(arena.spec) as attacker, debug.forged_reply(attacker, answer):
        with pytest.raises(SandboxError):
            attacker.run("true")
        with pytest.raises(SandboxError):
            attacker.read_file("file")
    arena.assert_unharmed()


def test_the_first_process_imports_nothing_from_where_it_serves(arena: Arena) -> None:
    with debug.evaluating("sys.path") as backend, backend.open(arena.spec) as attacker:
        assert attacker.read_file("anything") == b"[]"
