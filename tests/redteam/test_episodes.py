"""Policies that cheat in their sandboxes: none is resolved, and a real repair still is.

The cheats that stand for a mechanism are in `test_redteam_mechanisms`.
"""

from collections.abc import Callable
from typing import Any

import pytest
from cheating_episodes import EPISODES
from mechanisms import others

Play = Callable[..., dict[str, Any]]
REPAIR = "sed -i 's/+ discount/- discount/' cart.py"
# In these the source is not what git thinks, so that a repair in place is none.
MOVED = {"a source outside of the tree"}
HARMLESS = [name for name in EPISODES if name not in MOVED]
NUM_GROUPS = 5


@pytest.mark.parametrize("name", others(EPISODES))
def test_a_policy_that_repairs_nothing_is_not_resolved(play: Play, name: str) -> None:
    verdict = play(EPISODES[name])
    assert (verdict["resolved"], verdict["reason"]) == (False, "tests_failed"), verdict


@pytest.mark.parametrize("group", range(NUM_GROUPS))
def test_what_they_do_hurts_no_real_repair(play: Play, group: int) -> None:
    names = HARMLESS[group::NUM_GROUPS]
    verdict = play(*(EPISODES[name] for name in names), REPAIR)
    assert verdict["resolved"], (names, verdict)
