"""Files and commits in which a policy could read the repair."""

from dataclasses import replace

import pytest
from grading_fixtures import made_task
from sandbox_fixtures import commit

from coding_gym.patch import Patch
from coding_gym.task import FilesTree, GitTree
from coding_gym.tasks.leaks import find_leaks

pytestmark = pytest.mark.slow

BUGGY = "def area(width, height):\n    return width + height\n"
FIXED = "def area(width, height):\n    surface = width * height\n    return abs(surface)\n"
TASK = made_task(
    "area", {"area.py": BUGGY}, {"area.py": FIXED}, {}, fail_to_pass=("test_area.py::test_area",)
)


LINE = "return width * height * 1.0"
SHORT, SHORT_FIXED = (
    f"def area(width, height):\n    # in metres\n    {text}\n" for text in ("pass", LINE)
)
OTHER = {"other.py": f"def volume(width, height):\n    {LINE}\n"}
TRIVIAL = BUGGY.replace("width + height", "None")
# The added line is a part of a longer line of the same file, before and after.
LONG = BUGGY + "\n\ndef surface(width, height, scale):\n    return width * height * scale * scale\n"


@pytest.mark.parametrize(
    ("base", "fixed", "others", "expected"),
    [
        (BUGGY, FIXED, {"notes.txt": "surface = width * height\n"}, ()),
        (BUGGY, FIXED, {"build/area.py": FIXED, "data": "\0" + FIXED}, ("build/area.py",)),
        (BUGGY, TRIVIAL, {"copy.py": TRIVIAL}, ()),
        (BUGGY, BUGGY.replace("    return", "    return width + height\n    return"), {}, ()),
        (SHORT, SHORT_FIXED, OTHER, ()),
        (SHORT, SHORT_FIXED, OTHER | {"old.py": SHORT_FIXED}, ("old.py",)),
        (LONG, LONG.replace("width + height", "width * height * scale"), {}, ()),
    ],
    ids=[
        *("a part of the lines", "a copy", "trivial lines", "lines of the base"),
        *("a common short line", "a short line with its context", "a part of a line of the base"),
    ],
)
def test_only_a_file_with_all_added_lines_is_a_leak(store, base, fixed, others, expected):
    gold = Patch.between({"area.py": base}, {"area.py": fixed}).text
    task = replace(TASK, gold_patch=gold, tree=FilesTree({"area.py": base} | others))
    assert find_leaks(task, store.get(task)) == expected


def test_a_repair_in_the_history_is_found(store, tmp_path):
    folder = tmp_path / "repo"
    fixed, broken = (commit(folder, {"area.py": text}) for text in (FIXED, BUGGY))
    tree = GitTree(str(folder))
    task = replace(TASK, tree=tree, base_commit=broken, task_id="history")
    assert find_leaks(task, store.get(task)) == (f"{fixed}:area.py",)
