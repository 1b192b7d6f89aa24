"""Files and commits in which a policy could read the repair."""

from dataclasses import replace

import pytest
from sandbox_fixtures import commit

from coding_gym.patch import Patch
from coding_gym.task import FilesTree, GitTree, Task
from coding_gym.tasks.leaks import find_leaks

pytestmark = pytest.mark.slow

BUGGY = "def area(width, height):\n    return width + height\n"
FIXED = "def area(width, height):\n    surface = width * height\n    return abs(surface)\n"
TASK = Task(
    task_id="area",
    tree=FilesTree({}),
    problem_statement="area adds",
    gold_patch=Patch.between({"area.py": BUGGY}, {"area.py": FIXED}).text,
    fail_to_pass=("test_area.py::test_area",),
)


def leaks(store, fixed=FIXED, buggy=BUGGY, **more):
    """The leaks of a repair of ``area.py``, in a tree of more files."""
    gold = Patch.between({"area.py": buggy}, {"area.py": fixed}).text
    task = replace(TASK, gold_patch=gold, tree=FilesTree({"area.py": buggy} | more))
    return find_leaks(task, store.get(task))


def test_part_of_the_added_lines_elsewhere_is_no_leak(store):
    assert leaks(store, **{"notes.txt": "surface = width * height\n"}) == ()


def test_a_repaired_copy_in_the_tree_is_found(store):
    files = {"build/lib/area.py": FIXED, "data": "\0" + FIXED}
    assert leaks(store, **files) == ("build/lib/area.py",)


def test_trivial_lines_of_the_repair_are_no_leak(store):
    fixed = BUGGY.replace("width + height", "None")
    assert leaks(store, fixed, **{"copy.py": fixed}) == ()


def test_lines_that_the_file_has_already_do_not_count(store):
    assert leaks(store, BUGGY.replace("    return", "    return width + height\n    return")) == ()


def test_a_repair_in_the_history_is_found(store, tmp_path):
    folder = tmp_path / "repo"
    fixed, broken = (commit(folder, {"area.py": text}) for text in (FIXED, BUGGY))
    tree = GitTree(str(folder))
    task = replace(TASK, tree=tree, base_commit=broken, task_id="history")
    assert find_leaks(task, store.get(task)) == (f"{fixed}:area.py",)


def test_common_short_line_is_no_leak(store):
    line = "return width * height * 1.0"
    buggy, fixed = (f"def area(width, height):\n    # in metres\n    {x}\n" for x in ("pass", line))
    other = {"other.py": f"def volume(width, height):\n    {line}\n"}
    assert leaks(store, fixed, buggy, **other) == ()
    assert leaks(store, fixed, buggy, **other, **{"old.py": fixed}) == ("old.py",)


def test_lines_at_base_of_the_repaired_file_are_no_leak(store):
    """The added line is a part of a longer line of the same file, before and after."""
    buggy = (
        "def area(width, height):\n    return width + height\n\n\n"
        "def surface(width, height, scale):\n    return width * height * scale * scale\n"
    )
    assert leaks(store, buggy.replace("width + height", "width * height * scale"), buggy) == ()
