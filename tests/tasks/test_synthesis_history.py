"""Tasks from commits that repaired something."""

from pathlib import Path
from typing import Any

import git
import pytest

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, PatchError
from coding_gym.task import Task
from coding_gym.tasks.synthesis import tasks_from_history
from coding_gym.tasks.synthesis.commits import Commits
from coding_gym.workspace import Template, TemplateStore
from coding_gym.workspace.host_git import HostGit, HostGitError

BUGGY = "def area(width, height):\n    return width + height\n"
FIXED = "def area(width, height):\n    return width * height\n"
TESTS = "from shapes import area\n\n\ndef test_square():\n    assert area(2, 2) == 4\n"
MORE = TESTS + "\n\ndef test_wide():\n    assert area(3, 5) == 15\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shapes"
    repo = git.Repo.init(folder)
    author = git.Actor("a", "a@example.org")

    def commit(message: str, **files: str) -> None:
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
            repo.index.add([f"{name}.py"])
        repo.index.commit(message, author=author, committer=author)

    commit("Begin", shapes=BUGGY, test_shapes=TESTS)
    commit("Fix area: it must multiply", shapes=FIXED, test_shapes=MORE)
    commit("Say what it does", shapes=f'"""Shapes."""\n\n{FIXED}')
    commit("More of both", shapes=f"{FIXED}\n\nSIDES = 4\n", test_shapes=f"{MORE}\n\nEXTRA = 1\n")
    return folder


def test_a_commit_with_its_tests_becomes_a_task(repository: Path, store: TemplateStore) -> None:
    (task,) = tasks_from_history(repository, 5, store=store)
    commits = [commit.hexsha for commit in git.Repo(repository).iter_commits()]
    assert task.task_id == f"shapes__{commits[2][:12]}"
    assert task.base_commit == commits[3]
    assert task.fail_to_pass == ("test_shapes.py::test_wide",)
    assert task.pass_to_pass == ("test_shapes.py::test_square",)
    assert "area(3, 5)\n" in task.problem_statement
    assert "multiply" not in task.problem_statement
    assert "+    return width * height" in task.gold_patch
    assert "test_wide" in task.test_patch


def test_a_commit_that_cannot_be_used_costs_no_task(
    repository: Path,
) -> None:
    class Refusing(TemplateStore):
        """A store that has no template for the first task that it is asked for."""

        failures: list[Exception]

        def get(self, task: Task) -> Template:
            if self.failures:
                raise self.failures.pop()
            return super().get(task)

    refusing = Refusing()
    for failure in (PatchError("too large"), InvalidTaskError("no such field")):
        refusing.failures = [failure]
        assert len(tasks_from_history(repository, 5, store=refusing)) == 1


@pytest.mark.parametrize("damage", ["no patch", HostGitError("a damaged object")])
def test_a_commit_that_git_cannot_show_is_left_out(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str | Exception
) -> None:
    run = HostGit.run
    damages = [damage]

    def damaged(git: HostGit, *arguments: str, **options: Any) -> str:
        if "--full-index" in arguments and damages:
            found = damages.pop()
            if isinstance(found, Exception):
                raise found
            return found
        return run(git, *arguments, **options)

    monkeypatch.setattr(HostGit, "run", damaged)
    (tmp_path / "scratch").mkdir()
    assert len(list(Commits(repository, tmp_path / "scratch").fixes())) == 1  # of two


def test_a_folder_without_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="must be a git repository"):
        tasks_from_history(tmp_path, 1)
