"""One attack per promise of a sandbox: it is blocked, and succeeds without the protection."""

import pytest
from arena import Arena
from attack import Attack
from attack_tables import TABLES, leading

ATTACKS = [
    pytest.param(leading(attacks), id=promise.replace(" ", "-"))
    for promise, attacks in TABLES.items()
]
REAL = [param for param in ATTACKS if param.values[0].ablation]


@pytest.mark.parametrize("attack", ATTACKS)
def test_promise_is_kept(attack: Attack, arena: Arena) -> None:
    arena.assert_blocked(attack)


@pytest.mark.parametrize("attack", REAL)
def test_promise_is_broken_without_the_protection(attack: Attack, arena: Arena) -> None:
    arena.assert_succeeds(attack)
