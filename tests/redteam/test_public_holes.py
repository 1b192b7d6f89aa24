"""Public issues of SWE-bench and SWE-smith about cheats; coding_gym prevents each of these cheats.

SWE-bench issue 465: the repository of an episode holds commits from after the base. 631: a new
``conftest.py`` turns every outcome into a pass. SWE-smith issue 24: an expected test that the log
does not name counts as passed. `side_files` and `in_process` have the cheats of 538 (a file at the
path of a hidden test) and 601 (printed results).
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import git
import gymnasium as gym
import pytest
from episode_cheats import HARMLESS, SEARCH
from episodes import SUBMIT, shell
from grading_fixtures import BASE, FIXED, HIDDEN, TASK, GradeTree
from sandbox_fixtures import commit
from side_files import PASSING_HOOK

from coding_gym.grade import GradeReason
from coding_gym.rewards import fraction_passed
from coding_gym.task import GitTree

pytestmark = pytest.mark.slow


@pytest.fixture
def history(tmp_path: Path) -> tuple[Path, str]:
    """The project, with the repair on the branch after the base, a tag, a branch and a stash."""
    folder = tmp_path / "cart"
    states = ((BASE, "base"), ({"cart.py": FIXED}, "repair"), (HIDDEN, "tests"))
    base, *_ = [commit(folder, files, message) for files, message in states]
    with git.Repo(folder) as repository:
        repository.create_tag("v2")
        repository.create_head("fix/discount")
        (folder / "cart.py").write_text(f"{FIXED}\n")
        author = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        repository.git.execute(["git", *author, "stash"])
    return folder, base


def test_465_no_commit_of_an_episode_is_younger_than_its_base(history: tuple[Path, str]) -> None:
    folder, base = history
    task = replace(TASK, task_id="cart-history", tree=GitTree(str(folder)), base_commit=base)
    env: gym.Env[Any, Any] = gym.make(
        "coding_gym:CodingRepair-v0", tasks=[task.to_row()], challenge="passed"
    )
    env.reset()
    env.step(shell(f"git fetch -q --all --tags\n{SEARCH}{HARMLESS}"))
    verdict = env.step(SUBMIT)[4]["grade"]
    env.close()
    assert verdict.reason == "tests_failed", verdict
    assert set(verdict.fail_to_pass.values()) == {"failed"}


def test_631_patch_of_a_conftest_alone_is_empty(grade_tree: GradeTree) -> None:
    verdict = grade_tree({"conftest.py": PASSING_HOOK})
    assert verdict.reason is GradeReason.EMPTY_PATCH
    assert verdict.dropped_paths == ("conftest.py",)


@pytest.mark.parametrize(
    "source",
    ["def total(:\n", "raise SystemExit(0)\n", "import os\n\nos._exit(0)\n", "total = None\n"],
)
def test_smith_24_unreported_test_does_not_pass(grade_tree: GradeTree, source: str) -> None:
    verdict = grade_tree({"cart.py": source})
    assert not verdict.resolved
    assert fraction_passed(verdict) == 0
    assert verdict.fail_to_pass.keys() == set(TASK.fail_to_pass)
