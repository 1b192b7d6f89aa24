"""``coding-gym tasks synthesize`` checks arguments first and leaves no partial output."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from episodes import raising
from typer.testing import CliRunner, Result

from coding_gym import load_tasks
from coding_gym.cli import synthesize as command
from coding_gym.cli.app import app
from coding_gym.errors import (
    InvalidArgumentError,
    SandboxError,
    TemplateError,
    UnknownNameError,
)
from coding_gym.synthesis import Progress, Project


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "shop.py").write_text("def total(prices):\n    return sum(prices)\n")
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "made" / "deep" / "tasks.jsonl"


@pytest.fixture
def no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "copy_project", raising(AssertionError("something was copied")))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["tasks", "synthesize", *map(str, arguments)])


def stopping(monkeypatch: pytest.MonkeyPatch, failure: Any, num_tasks: int) -> None:
    """Replaces the insertion of bugs: it reports ``num_tasks`` tasks, then raises ``failure``."""

    def synthesize(project: Project, *_: Any, progress: Progress, **__: Any) -> None:
        task = project.task("shop__one")
        for _ in range(num_tasks):
            progress.add(dataclasses.replace(task, fail_to_pass=("test_shop.py::test_it",)))
        if failure is not None:
            raise failure

    monkeypatch.setattr(command, "synthesize", synthesize)


@pytest.mark.usefixtures("no_copy")
def test_existing_files_and_folders_are_refused(repo: Path, tmp_path: Path) -> None:
    out = tmp_path / "tasks.jsonl"
    out.write_text("mine\n")
    for path in (out, out / "tasks.jsonl", tmp_path):
        problem = run("--repo", repo, "--out", path).exception
        assert isinstance(problem, InvalidArgumentError)
        assert str(path) in str(problem)
    assert out.read_text() == "mine\n"


@pytest.mark.usefixtures("no_copy")
def test_unknown_kind_of_bug_is_refused(repo: Path) -> None:
    problem = run("--repo", repo, "--kind", "comparisons").exception
    assert isinstance(problem, UnknownNameError)
    assert "comparison" in str(problem)


@pytest.mark.parametrize(
    "option",
    [
        ("--kind", "comparison"),
        ("--tests", "tests"),
        ("--seed", "7"),
        ("--concurrency", "999"),
        ("--show-failing",),
    ],
)
def test_options_that_the_history_does_not_use_are_refused(
    option: tuple[str, ...], repo: Path
) -> None:
    problem = run("--repo", repo, "--from-history", *option).exception
    assert isinstance(problem, InvalidArgumentError)
    assert option[0] in str(problem)


DROPPED = [("1a2b3c4 Fix area", "a merge"), ("5d6e7f8", "a\nb"), *[("a.py:3 loop", "equal")] * 21]


@pytest.mark.parametrize("source", ["synthesize", "tasks_from_history"])
@pytest.mark.parametrize("end", [None, KeyboardInterrupt()])
def test_reasons_of_dropped_bugs_and_commits_are_printed(
    repo: Path, out: Path, monkeypatch: pytest.MonkeyPatch, source: str, end: Any
) -> None:
    def make(*_: Any, progress: Progress, **__: Any) -> None:
        progress.dropped += DROPPED
        if end is not None:
            raise end

    monkeypatch.setattr(command, source, make)
    options = ["--from-history"] if source == "tasks_from_history" else []
    lines = run("--repo", repo, "--out", out, *options).output.splitlines()
    assert lines[:3] == ["1a2b3c4 Fix area: a merge", "5d6e7f8: a", "21 dropped: equal"]


@pytest.mark.parametrize(
    ("failure", "exit_code"),
    [(TemplateError("no environment"), 1), (KeyboardInterrupt(), 130), (None, 1)],
)
def test_no_folder_is_left_if_no_task_was_made(
    failure: Any, exit_code: int, repo: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping(monkeypatch, failure, num_tasks=0)
    assert run("--repo", repo, "--out", out).exit_code == exit_code
    assert not out.parent.parent.exists()


@pytest.mark.parametrize(
    ("failure", "exit_code"), [(KeyboardInterrupt(), 130), (SandboxError("it died"), 1)]
)
def test_tasks_made_before_a_stop_are_kept(
    failure: Any, exit_code: int, repo: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping(monkeypatch, failure, num_tasks=1)
    result = run("--repo", repo, "--out", out)
    assert result.exit_code == exit_code
    assert (str(out) in result.output) == (exit_code == 130)
    (task,) = load_tasks(out)
    assert Path(task.tree.folder).parent == out.parent / "tasks-trees"  # type: ignore[union-attr]


def test_tasks_of_a_repository_make_no_folder_of_trees(
    repo: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(name="shop", folder=repo)  # not below the folder for trees
    task = dataclasses.replace(project.task("shop__one"), fail_to_pass=("test_shop.py::test_it",))

    def make(*_: Any, progress: Progress, **__: Any) -> None:
        progress.add(task)

    monkeypatch.setattr(command, "tasks_from_history", make)
    run("--repo", repo, "--out", out, "--from-history")
    assert [path.name for path in out.parent.iterdir()] == ["tasks.jsonl"]
