"""`calibrated_similarity`: it separates right from wrong where texts do not, on bundled tasks."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from coding_gym import load_tasks
from coding_gym.patch import Patch
from coding_gym.rewards import calibrated_similarity, patch_similarity
from coding_gym.rewards.edits import changed_runs
from coding_gym.task import FolderTree, Task

# Every twelfth: of each program one or none.
TASKS = load_tasks("bundled")[::12]
Edit = Callable[[list[str], list[str]], list[str]]
Case = tuple[str, Callable[[Edit], str], dict[str, str], dict[str, str]]


def base_files(task: Task) -> dict[str, str]:
    """The texts that the gold patch changes."""
    assert isinstance(task.tree, FolderTree)
    paths = {p for p in Path(task.tree.folder).rglob("*.py") if p.is_file()}
    files = {str(p.relative_to(task.tree.folder)): p.read_text(encoding="utf-8") for p in paths}
    if task.tree.reverse_patch:
        files = Patch(task.tree.reverse_patch).apply(files, reverse=True)
    return files


@pytest.fixture(params=TASKS, ids=lambda task: task.task_id)
def case(request: pytest.FixtureRequest) -> Case:
    """The gold patch as we write it, one that edits its lines otherwise, and both trees."""
    task = request.param
    base = base_files(task)
    fixed = Patch(task.gold_patch).apply(base)
    gold = Patch.between(base, fixed)

    def otherwise(edit: Edit) -> str:
        changed = dict(base)
        for change in gold.files:
            if change.old_path is None:
                continue
            lines = base[change.path].split("\n")
            for line, old, new in sorted(changed_runs(change), reverse=True):
                lines[line - 1 : line - 1 + len(old)] = edit(old, new)
            changed[change.path] = "\n".join(lines)
        return Patch.between(base, changed).text

    return gold.text, otherwise, base, fixed


def test_the_gold_scores_one_and_no_change_nothing(case: Case) -> None:
    gold, _, base, _ = case
    assert calibrated_similarity(gold, gold) == 1
    assert calibrated_similarity(gold, "") == 0
    path = min(base)
    blank = Patch.between(base, base | {path: base[path] + "\n"}).text
    assert calibrated_similarity(gold, blank) == 0


def test_what_only_touches_the_right_lines_is_worth_next_to_nothing(case: Case) -> None:
    gold, otherwise, _, _ = case
    no_ops: list[Edit] = [
        lambda old, _: [f"{line} " for line in old] or [""],
        lambda old, _: [re.sub(r"(?<=\S) (?=\S)", "  ", line) for line in old] or [""],
        lambda old, _: [f"{line}  # checked" for line in old] or ["# checked"],
    ]
    for no_op in no_ops:
        patch = otherwise(no_op)
        assert patch != gold
        assert calibrated_similarity(gold, patch) < 0.15
        assert patch_similarity(gold, patch) > calibrated_similarity(gold, patch)


GOLD = "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -1,2 +1,2 @@\n int f;\n-a + b;\n+a * b;\n"


def test_worked_examples() -> None:
    cases = [
        (GOLD.replace("@@ -1,2 +1,2 @@", "@@ -1,2 +1,2 @@ section"), 1.0),
        (GOLD.replace("@@ -1,2 +1,2 @@", "@@ -41,2 +41,2 @@"), 0.0),  # elsewhere in the file
        (GOLD.replace("x.c", "y.c"), 0.0),
        (GOLD.replace("a * b;", "a - b;"), 0.5),
        (GOLD.replace("a * b;", "  a  *  b ;"), 1.0),  # in C white space is none
        ("no diff", 0.0),
        (GOLD.replace(",2 +", ",9 +"), 0.0),  # cut off
        (GOLD + "#" * 500_000, 0.0),
    ]
    for patch, score in cases:
        assert calibrated_similarity(GOLD, patch) == pytest.approx(score), patch


def test_a_gold_patch_that_changes_no_token_is_matched_by_an_equal_one_only() -> None:
    spaces = GOLD.replace("+a * b;", "+a + b; ")
    assert calibrated_similarity(spaces, spaces) == 1
    assert calibrated_similarity(spaces, GOLD) == 0
