"""Floods: processes, output, arguments. More bombs are in ``tests/stress``."""

import pytest
from arena import Arena, assert_bomb_ends

_BOMBS = {
    "fork bomb": "b() { b | b & }; b",
    "bomb of stopped processes": "for i in {1..60}; do (kill -STOP $BASHPID) & done",
}


@pytest.mark.parametrize("bomb", _BOMBS.values(), ids=_BOMBS.keys())
def test_a_bomb_ends_with_its_command(bomb: str, arena: Arena) -> None:
    assert_bomb_ends(arena, bomb)


def test_more_than_a_process_can_be_given_is_refused_inside(arena: Arena) -> None:
    with arena.open() as attacker:
        large = attacker.run("true", env={f"V{n}": "x" * 1000 for n in range(5000)})
        assert (large.exit_code, large.output) == (126, "bash: Argument list too long\n")
        assert attacker.run(": " + "x" * ((1 << 20) - 2)).ok
        assert attacker.run("wc -c", stdin=bytes(64 << 20)).output.strip() == str(64 << 20)
