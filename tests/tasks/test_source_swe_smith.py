"""SWE-smith: the patch of a row makes the bug, and the gold patch undoes it."""

import subprocess
from pathlib import Path

import pytest
from sandbox_fixtures import commit as committed
from sandbox_fixtures import run_git

from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.task import GitTree
from coding_gym.tasks import load_tasks
from coding_gym.tasks.sources.reversal import reversed_patch
from coding_gym.workspace import TemplateStore

BUG = """\
diff --git a/pkg/core.py b/pkg/core.py
index 111..222 100644
--- a/pkg/core.py
+++ b/pkg/core.py
@@ -1,2 +1,1 @@ def core():
-right = 1
-kept = 2
+wrong = 0
"""


def row(**more: object) -> dict[str, object]:
    return {
        "instance_id": "owner__na.me_x.0123abcd.combine_file__1",
        "repo": "swesmith/owner__na.me_x.0123abcd",
        "image_name": "swesmith.x86_64.owner__na.me_x.0123abcd",
        "base_commit": "main",
        "patch": BUG,
        "problem_statement": "core is wrong",
        "FAIL_TO_PASS": ["tests/test_core.py::test_core"],
        "PASS_TO_PASS": ["tests/test_core.py::test_other"],
        "created_at": "2025-06-19T18:37:05.948843",
    } | more


def test_gold_patch_reverses_the_patch_of_the_row():
    (task,) = load_tasks([row()])
    assert task.gold_patch == task.tree.reverse_patch
    (change,) = Patch(task.gold_patch).files
    assert change.apply("wrong = 0\n") == "right = 1\nkept = 2\n"
    assert task.repo == "owner/na.me_x"
    assert task.tree.repository == "https://github.com/owner/na.me_x"
    assert (task.base_commit, task.environment_setup_commit) == ("0123abcd", "0123abcd")
    assert task.image == "jyangballin/swesmith.x86_64.owner_1776_na.me_x.0123abcd:latest"
    assert task.interpreter == "3.10"
    assert task.install_commands[0] == "python -m pip install -e ."
    assert load_tasks([task.to_row()]) == (task,)


TWENTY = "".join(f"line {n}\n" for n in range(20))
# The contents of a file before and after a change.
STATES = {
    "changed in two places": (
        "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n",
        "a\nB\nBB\nd\ne\nf\ng\nh\ni\nk\nl\n",
    ),
    "without a last line feed": ("a\nb", "a\nb\nc"),
    "with carriage returns": ("a\r\nb\r\n", "a\r\nc\r\n"),
    "new": (None, "a\n"),
    "deleted": ("a\nb\n", None),
    "executable": ("a\n", "a\n"),
    "called a b": ("a\n", "b\n"),
    "renamed": (TWENTY, TWENTY.replace("line 3\n", "line three\n")),
}


@pytest.mark.parametrize("name", STATES)
def test_git_applies_a_patch_and_its_reversal(tmp_path: Path, name: str):
    before, after = STATES[name]
    path = tmp_path / ("a b.py" if name == "called a b" else "file.py")
    run_git(tmp_path, "init", "-q")
    right = staged(tmp_path, path, before)
    run_git(tmp_path, "commit", "-qm", "right", "--allow-empty")
    if name == "renamed":
        path = path.rename(tmp_path / "new.py")
    wrong = staged(tmp_path, path, after, mode=0o755 if name == "executable" else 0o644)
    run_git(tmp_path, "diff", "--cached", "-M", "--output=.git/bug")
    bug = (tmp_path / ".git" / "bug").read_bytes().decode()
    assert ("rename from file.py" in bug) is (name == "renamed")
    gold = reversed_patch(Patch(bug))
    applied(tmp_path, gold.text)
    assert run_git(tmp_path, "write-tree") == right != wrong
    applied(tmp_path, reversed_patch(gold).text)
    assert run_git(tmp_path, "write-tree") == wrong


def staged(folder: Path, path: Path, text: str | None, mode: int = 0o644) -> str:
    """Writes or removes a file; returns the tree of all files."""
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_bytes(text.encode())
        path.chmod(mode)
    run_git(folder, "add", "--all")
    return run_git(folder, "write-tree")


def applied(folder: Path, patch: str) -> None:
    command = ["git", "apply", "--index", "--whitespace=nowarn", "-"]
    subprocess.run(command, cwd=folder, input=patch.encode(), check=True)


def test_template_has_the_bug_and_no_repair(tmp_path: Path, store: TemplateStore):
    for text in ("older = 1\n", "right = 1\nkept = 2\n"):
        commit = committed(tmp_path / "clone", {"pkg/core.py": text})
    bug = row(repo=f"swesmith/owner__name.{commit[:8]}")
    repositories = {"owner/name": tmp_path / "clone"}
    (task,) = load_tasks([bug], repositories=repositories)
    assert task.tree == GitTree(str(tmp_path / "clone"), task.gold_patch)
    assert (task.base_commit, task.environment_setup_commit) == (commit, commit)
    (bare,) = load_tasks([task.to_row() | {"install_commands": [], "interpreter": "base"}])
    template = store.get(bare)
    with open_sandbox(template.spec) as sandbox:
        assert sandbox.read_file("pkg/core.py") == b"wrong = 0\n"
        seen = sandbox.run("git status --short; git log --all -p; git rev-list --all --count")
    assert seen.output.endswith("\n1\n")
    assert "right" not in seen.output
