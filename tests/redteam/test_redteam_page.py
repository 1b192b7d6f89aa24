"""One cheat for each mechanism of cheating: none is resolved. The fast part of the red team."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cart_task import FIXED
from cheating_episodes import EPISODES
from command_files import COMMANDED, SCRIPTED, grade_commands
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
def test_a_policy_that_cheats_earns_nothing(play: Callable[..., dict[str, Any]], name: str) -> None:
    verdict = play(EPISODES[name])
    assert (verdict["resolved"], verdict["reason"]) == (False, "tests_failed"), verdict


@pytest.mark.parametrize("name", BY_COMMAND.values(), ids=BY_COMMAND.keys())
def test_a_changed_test_command_is_not_resolved(store: TemplateStore, name: str) -> None:
    verdict = grade_commands(store, COMMANDED[name])
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert set(verdict.dropped_paths) == set(COMMANDED[name])


def test_each_mechanism_is_played_once() -> None:
    assert BY_PATCH | BY_EPISODE | BY_COMMAND == MECHANISMS


ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "redteam.md").read_text(encoding="utf-8")
ENDS = {name: cheat.reason.value for name, cheat in PATCHES.items()}
ENDS |= dict.fromkeys([*EPISODES, *COMMANDED, *SCRIPTED], "tests_failed")


def test_every_cheat_is_listed_with_how_it_ends() -> None:
    rows = [f"| {name} | `{reason}` |" for name, reason in ENDS.items()]
    assert [row for row in rows if row not in PAGE] == []
    assert len(rows) >= 100


def test_every_mechanism_is_listed_with_its_cheat() -> None:
    rows = [f"| {mechanism} | {name} |" for mechanism, name in MECHANISMS.items()]
    assert [row for row in rows if row not in PAGE] == []


def test_every_test_that_is_named_exists() -> None:
    sources = "".join(
        p.read_text(encoding="utf-8") for p in Path(__file__).parent.glob("test_*.py")
    )
    named = set(re.findall(r"\btest_\w+(?=`)", PAGE))
    assert [name for name in named if f"def {name}(" not in sources] == []
    assert len(named) > 12
