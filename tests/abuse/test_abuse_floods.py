"""Floods: processes, output, arguments. More bombs are in ``tests/stress``."""

from pathlib import Path

import pytest
from arena import Arena, assert_bomb_ends

from coding_gym.testing import debug

_BOMBS = {
    "fork bomb": "b() { b | b & }; b",
    "bomb of stopped processes": "for i in {1..60}; do (kill -STOP $BASHPID) & done",
}


@pytest.mark.parametrize("bomb", _BOMBS.values(), ids=_BOMBS.keys())
def test_a_bomb_ends_with_its_command(bomb: str, arena: Arena) -> None:
    assert_bomb_ends(arena, bomb)


_FLOOD_BYTES = 64 << 20
_FLOODS = {
    "one line": "head -c 64M /dev/zero | tr '\\0' x",
    "many lines": "yes | head -c 64M",
    "errors": "head -c 64M /dev/zero >&2",
}


@pytest.mark.parametrize("command", _FLOODS.values(), ids=_FLOODS.keys())
def test_a_flood_of_output_costs_no_memory(command: str, arena: Arena) -> None:
    with arena.open() as attacker:
        result = attacker.run(command, max_output_bytes=1 << 16)
        assert result.truncated
        assert f"[... {_FLOOD_BYTES - (1 << 16)} bytes left out ...]" in result.output
        assert len(result.output) < 1 << 17
        first = debug.first_pid(attacker)
        status = Path(f"/proc/{first}/status").read_text(encoding="ascii")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < _FLOOD_BYTES >> 10


def test_an_endless_flood_ends_with_its_time(arena: Arena) -> None:
    with arena.open() as attacker:
        result = attacker.run("yes & yes >&2 & yes", timeout_s=0.3, max_output_bytes=1000)
        assert result.timed_out
        assert len(result.output) < 2000


def test_more_than_a_process_can_be_given_is_refused_inside(arena: Arena) -> None:
    with arena.open() as attacker:
        large = attacker.run("true", env={f"V{n}": "x" * 1000 for n in range(5000)})
        assert (large.exit_code, large.output) == (126, "bash: Argument list too long\n")
        assert attacker.run(": " + "x" * ((1 << 20) - 2)).ok
        assert attacker.run("wc -c", stdin=bytes(64 << 20)).output.strip() == str(64 << 20)
