"""Tasks from commits that repaired something."""

from pathlib import Path
from typing import Any

import git
import pytest
from sandbox_fixtures import commit

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, PatchError
from coding_gym.synthesis import tasks_from_history
from coding_gym.task import Task
from coding_gym.workspace import Template, TemplateStore

pytestmark = pytest.mark.slow

BUGGY = "def area(width, height):\n    return width + height\n"
FIXED = "def area(width, height):\n    return width * height\n"
TESTS = "from shapes import area\n\n\ndef test_square():\n    assert area(2, 2) == 4\n"
MORE = TESTS + "\n\ndef test_wide():\n    assert area(3, 5) == 15\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shapes"
    for message, program, tests in [
        ("Begin", BUGGY, TESTS),
        ("Fix area: it must multiply", FIXED, MORE),
        ("Say what it does", f'"""Shapes."""\n\n{FIXED}', MORE),
        ("More of both", f"{FIXED}\n\nSIDES = 4\n", f"{MORE}\n\nEXTRA = 1\n"),
    ]:
        commit(folder, {"shapes.py": program, "test_shapes.py": tests}, message)
    return folder


def test_a_commit_with_its_tests_becomes_a_task(repository: Path, store: TemplateStore) -> None:
    (task,) = tasks_from_history(repository, 5, store=store)
    commits = [commit.hexsha for commit in git.Repo(repository).iter_commits()]
    assert task.task_id == f"shapes__{commits[2][:12]}"
    assert task.base_commit == commits[3]
    assert task.fail_to_pass == ("test_shapes.py::test_wide",)
    assert task.pass_to_pass == ("test_shapes.py::test_square",)
    assert task.problem_statement.startswith("Wrong result of `area`\n")
    assert "15" not in task.problem_statement
    assert "multiply" not in task.problem_statement
    assert "+    return width * height" in task.gold_patch
    assert "test_wide" in task.test_patch


def test_a_commit_whose_test_names_no_function_is_reported(
    tmp_path: Path, store: TemplateStore
) -> None:
    nothing = "def test_nothing():\n    pass\n\n\n"
    inside = "def test_wide():\n    from shapes import area\n\n    assert area(3, 5) == 15\n"
    commit(tmp_path / "shapes", {"shapes.py": BUGGY, "test_shapes.py": nothing}, "Begin")
    fixed = {"shapes.py": FIXED, "test_shapes.py": nothing + inside}
    commit(tmp_path / "shapes", fixed, "Fix area")
    reports: list[Any] = []
    assert tasks_from_history(tmp_path / "shapes", 5, store=store, on_progress=reports.append) == ()
    assert reports[-1].num_failed == 1
    assert "names a function" in reports[-1].failure


@pytest.mark.parametrize("failure", [PatchError("too large"), InvalidTaskError("no such field")])
def test_a_commit_that_cannot_be_used_costs_no_task(
    repository: Path, store: TemplateStore, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    failures, get = [failure], TemplateStore.get

    def refusing(self: TemplateStore, task: Task) -> Template:
        if failures:
            raise failures.pop()
        return get(self, task)

    monkeypatch.setattr(TemplateStore, "get", refusing)
    assert len(tasks_from_history(repository, 5, store=store)) == 1


def test_a_folder_without_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        tasks_from_history(tmp_path, 1)
