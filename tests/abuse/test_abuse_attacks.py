"""All attacks but those of ``test_abuse_promises``, each in a sandbox of its own."""

import pytest
from arena import Arena
from attack import Attack
from attack_tables import TABLES, others

ATTACKS = [attack for table in TABLES.values() for attack in others(table)]


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_attack_is_blocked(attack: Attack, arena: Arena) -> None:
    arena.assert_blocked(attack)


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.ablation], ids=str)
def test_attack_succeeds_without_the_protection(attack: Attack, arena: Arena) -> None:
    arena.assert_succeeds(attack)
