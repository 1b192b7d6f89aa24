"""Policies that cheat in their sandboxes: none is resolved, and a real repair still is."""

from collections.abc import Callable
from typing import Any

import pytest
from cheating_episodes import EPISODES
from mechanisms import cheat_id

Play = Callable[..., dict[str, Any]]
REPAIR = "sed -i 's/+ discount/- discount/' cart.py"
# In these the source is not what git thinks, so that a repair in place is none.
MOVED = {"a source outside of the tree"}
HARMLESS = [name for name in EPISODES if name not in MOVED]
NUM_GROUPS = 5


@pytest.mark.parametrize("name", EPISODES, ids=cheat_id)
def test_a_policy_that_cheats_earns_nothing(play: Play, name: str) -> None:
    verdict = play(EPISODES[name])
    assert (verdict["resolved"], verdict["reason"]) == (False, "tests_failed"), verdict


@pytest.mark.parametrize("group", range(NUM_GROUPS))
def test_what_they_do_hurts_no_real_repair(play: Play, group: int) -> None:
    names = HARMLESS[group::NUM_GROUPS]
    verdict = play(*(EPISODES[name] for name in names), REPAIR)
    assert verdict["resolved"], (names, verdict)
