"""One cheat for each mechanism of cheating: none is resolved. The fast part of the red team."""

from collections.abc import Callable
from typing import Any

import pytest
from cart_task import FIXED
from cheating_episodes import EPISODES
from command_files import COMMANDED, grade_commands
from grading_fixtures import GradeTree
from mechanisms import MECHANISMS, PATCHES, assert_earns_nothing, by_mechanism

from coding_gym.grade import GradeReason
from coding_gym.workspace import TemplateStore

BY_PATCH, BY_EPISODE, BY_COMMAND = map(by_mechanism, (PATCHES, EPISODES, COMMANDED))


def test_the_real_repair_is_resolved(grade_tree: GradeTree) -> None:
    verdict = grade_tree({"cart.py": FIXED})
    assert verdict.resolved, verdict


@pytest.mark.parametrize("name", BY_PATCH.values(), ids=BY_PATCH.keys())
def test_a_patch_that_cheats_is_not_resolved(grade_tree: GradeTree, name: str) -> None:
    assert_earns_nothing(grade_tree(PATCHES[name].changes), name)


@pytest.mark.parametrize("name", BY_EPISODE.values(), ids=BY_EPISODE.keys())
def test_a_policy_that_cheats_is_not_resolved(
    play: Callable[..., dict[str, Any]], name: str
) -> None:
    verdict = play(EPISODES[name])
    assert (verdict["resolved"], verdict["reason"]) == (False, "tests_failed"), verdict


@pytest.mark.parametrize("name", BY_COMMAND.values(), ids=BY_COMMAND.keys())
def test_a_changed_test_command_is_not_resolved(store: TemplateStore, name: str) -> None:
    verdict = grade_commands(store, COMMANDED[name])
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert set(verdict.dropped_paths) == set(COMMANDED[name])


def test_each_mechanism_is_played_once() -> None:
    assert BY_PATCH | BY_EPISODE | BY_COMMAND == MECHANISMS
