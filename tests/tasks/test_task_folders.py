"""Task folders: the tasks that a task.toml and its files become."""

from pathlib import Path

import pytest
from rows import refusal
from sandbox_fixtures import write_files

from coding_gym.patch import Patch
from coding_gym.task import FolderTree
from coding_gym.tasks import load_tasks

FIXED = {"calc/__init__.py": "def add(a, b):\n    return a + b\n"}
BASE = {"calc/__init__.py": "def add(a, b):\n    return a - b\n"}
VISIBLE = {"tests/test_calc.py": "def test_old():\n    pass\n"}
HIDDEN = {
    "tests/test_calc.py": "def test_old():\n    pass\n\n\ndef test_add():\n    pass\n",
    "tests/test_new.py": "def test_new():\n    pass\n",
}
GOLD = Patch.between(BASE, FIXED).text
MANIFEST = """
id = "calc-add"
fail_to_pass = ["tests/test_calc.py::test_add", "tests/test_new.py::test_new"]
pass_to_pass = ["tests/test_calc.py::test_old"]
problem_statement = "add subtracts"
created_at = 2024-05-14T09:30:00Z
"""
FIXED_MANIFEST = MANIFEST + 'tree_state = "fixed"\n'


def make(folder: Path, manifest: str = MANIFEST, *, tree: dict[str, str] = BASE | VISIBLE) -> Path:
    write_files(folder / "tree", tree)
    write_files(folder / "hidden", HIDDEN)
    return write_files(folder, {"task.toml": manifest, "gold.patch": GOLD})


@pytest.mark.parametrize("state", ["base", "fixed"])
def test_the_tree_holds_the_bug_or_its_repair(tmp_path, state):
    tree = (FIXED if state == "fixed" else BASE) | VISIBLE
    manifest = MANIFEST if state == "base" else FIXED_MANIFEST
    (task,) = load_tasks(make(tmp_path / "calc", manifest, tree=tree))
    reverse_patch = GOLD if state == "fixed" else ""
    assert task.tree == FolderTree(str(tmp_path / "calc" / "tree"), reverse_patch)
    assert (task.task_id, task.gold_patch, task.repo) == ("calc-add", GOLD, "calc")
    assert (task.language, task.created_at) == ("python", "2024-05-14T09:30:00+00:00")
    assert task.test_patch == Patch.between(VISIBLE, HIDDEN).text


def test_changed_files_of_a_task_are_read_again(tmp_path):
    folder = make(tmp_path / "calc", f'tree = "../tree"\n{MANIFEST}')
    (folder / "tree").rename(tmp_path / "tree")
    load_tasks(folder)
    write_files(tmp_path / "tree", {"tests/test_calc.py": "old = 1\n"})
    write_files(folder, {"hidden/tests/test_new.py": "def test_new():\n    assert True\n"})
    (after,) = load_tasks(folder)
    assert "-old = 1\n" in after.test_patch
    assert "assert True" in after.test_patch


def test_change_of_a_tree_outside_the_source_is_noticed(tmp_path):
    folder = make(tmp_path / "tasks" / "calc", f'tree = "../../tree"\n{MANIFEST}')
    (folder / "tree").rename(tmp_path / "tree")
    load_tasks(tmp_path / "tasks")
    (tmp_path / "tree").rename(tmp_path / "moved")
    assert "'tree' must name a folder" in refusal(tmp_path / "tasks")
    (tmp_path / "moved").rename(tmp_path / "tree")
    assert len(load_tasks(tmp_path / "tasks")) == 1


def test_file_that_cannot_be_reached_does_not_hide_a_task(tmp_path):
    folder = make(tmp_path / "calc")
    (folder / "tree" / "link").symlink_to("/proc/1/cwd")
    assert len(load_tasks(tmp_path)) == 1


def test_reversed_gold_patch_that_changes_a_hidden_test_is_refused(tmp_path):
    fixed = FIXED | HIDDEN
    folder = make(tmp_path, FIXED_MANIFEST, tree=fixed)
    write_files(folder, {"gold.patch": Patch.between(BASE | VISIBLE, fixed).text})
    assert "tests/test_calc.py" in refusal(folder)


def test_tasks_come_in_the_order_of_their_paths(tmp_path):
    for path in ("b/two", "a/one", "b/deep/er/three"):
        make(tmp_path / path, MANIFEST.replace("calc-add", path))
    # A program may have a file of that name itself.
    write_files(
        tmp_path, {"a/one/tree/task.toml": "not ours", "a/one/hidden/task.toml": "not ours"}
    )
    assert [t.task_id for t in load_tasks(tmp_path)] == ["a/one", "b/deep/er/three", "b/two"]


def test_compiled_hidden_tests_are_ignored_and_binary_gold_is_kept(tmp_path):
    folder = make(tmp_path)
    cache = folder / "hidden" / "tests" / "__pycache__"
    cache.mkdir()
    (cache / "test_calc.pyc").write_bytes(b"\0\1\2")
    binary = (
        "diff --git a/x.bin b/x.bin\nindex 1..2 100644\nBinary files a/x.bin and b/x.bin differ\n"
    )
    write_files(folder, {"gold.patch": GOLD + binary})  # git applies it
    (task,) = load_tasks(folder)
    assert task.gold_patch.endswith(binary)
    assert Patch(task.test_patch).paths == set(HIDDEN)


def test_a_task_without_gold_patch_and_hidden_files_loads(tmp_path):
    write_files(tmp_path / "tree", BASE | HIDDEN)
    write_files(tmp_path, {"task.toml": MANIFEST})
    (task,) = load_tasks(tmp_path)
    assert (task.gold_patch, task.test_patch) == ("", "")


TESTS = 'fail_to_pass = ["tests/test_calc.py::test_add", "tests/test_new.py::test_new"]'


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("", 'tree_sate = "fixed"', "tree_sate"),
        ("", 'tree_state = "broken"', "tree_state"),
        ("", 'tree = "nowhere"', "tree"),
        ('id = "calc-add"', "", "id"),
        (TESTS, 'fail_to_pass = "a.py::test_b"', "fail_to_pass"),
    ],
)
def test_wrong_manifest_is_refused_with_file_and_field(tmp_path, old, new, field):
    assert old in MANIFEST
    manifest = MANIFEST.replace(old, new, 1) if old else MANIFEST + new
    message = refusal(make(tmp_path, manifest))
    assert message.startswith(str(tmp_path / "task.toml"))
    assert f": field '{field}'" in message


def test_expected_test_in_no_file_is_refused(tmp_path):
    gone = MANIFEST.replace("tests/test_new.py", "test_new.py")
    assert "'test_new.py::test_new'" in refusal(make(tmp_path, gone))


def test_tests_of_other_runners_need_not_be_files(tmp_path):
    java = 'fail_to_pass = ["com.shop.TillTest::adds"]\nrunner = "tap"\ntest_command = "make"'
    manifest = MANIFEST.replace(TESTS, java)
    (task,) = load_tasks(make(tmp_path / "b", manifest))
    assert task.runner == "tap"


@pytest.mark.parametrize(
    ("manifest", "tree", "files", "named"),
    [
        (MANIFEST + "= 3", BASE, {}, "task.toml: "),
        (MANIFEST, BASE | HIDDEN, {}, "tests/test_"),  # the policy could read a hidden test
        (MANIFEST, BASE | VISIBLE, {"hidden/data.bin": b"a\0b"}, "data.bin"),
        (MANIFEST, BASE | VISIBLE, {"gold.patch": ""}, "gold.patch"),
        (MANIFEST, BASE | VISIBLE, {"gold.patch": "hello\n"}, "gold.patch"),
        (FIXED_MANIFEST, FIXED | VISIBLE, {"gold.patch": None}, "gold.patch"),
        (MANIFEST, BASE | VISIBLE, {"plan.json": b"\xff"}, "plan.json"),
    ],
)
def test_unusable_file_is_refused_by_name(tmp_path, manifest, tree, files, named):
    folder = make(tmp_path, manifest, tree=tree)
    for name, content in files.items():
        if content is None:
            (folder / name).unlink()
        else:
            write_files(folder, {name: content})
    assert named in refusal(folder)


def test_folder_without_tasks_is_refused(tmp_path):
    (tmp_path / "rows.json").write_text("[]")
    message = refusal(tmp_path)
    assert "coding-gym tasks new" in message
    assert ".json file" in message
