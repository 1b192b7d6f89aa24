"""All attacks, each in a sandbox of its own; for each promise one that is fast."""

import pytest
from arena import Arena
from attack import Attack
from attack_tables import TABLES, leading

pytestmark = pytest.mark.slow

ATTACKS = [
    pytest.param(attack, id=f"{'promise-' * (attack is leading(table))}{attack}")
    for table in TABLES.values()
    for attack in table
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_attack_is_blocked(attack: Attack, arena: Arena) -> None:
    arena.assert_blocked(attack)


@pytest.mark.parametrize("attack", [one for one in ATTACKS if one.values[0].ablation])
def test_attack_succeeds_without_protection(attack: Attack, arena: Arena) -> None:
    arena.assert_succeeds(attack)
