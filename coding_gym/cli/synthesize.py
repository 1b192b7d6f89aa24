"""``coding-gym tasks synthesize``: tasks from a project of yours, or of the package index."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from coding_gym.cli import options
from coding_gym.cli.console import INTERRUPTED, LineProgress, terminal
from coding_gym.errors import InvalidArgumentError
from coding_gym.synthesis import (
    Progress,
    Project,
    copy_project,
    download,
    synthesize,
    tasks_from_history,
)
from coding_gym.synthesis.mutants import check_operators
from coding_gym.synthesis.writing import Output
from coding_gym.task import Task

_INSTALL_PYPI = "python -m pip install --quiet pytest --editable ."
_GRADE_EVERY = {"all": 1, "sample": 10, "none": 0}
_Make = Callable[[Path, Callable[[Progress], None]], tuple[Task, ...]]


def synthesize_tasks(
    repo: Annotated[
        Path | None, typer.Option(help="A project's folder; of a git repository the last commit.")
    ] = None,
    pypi: Annotated[
        str | None, typer.Option(help="NAME==VERSION: a source distribution, tests included.")
    ] = None,
    num_tasks: Annotated[
        int, typer.Option("--num-tasks", "-n", min=1, help="How many tasks.")
    ] = 200,
    seed: Annotated[int, typer.Option(help="Decides which tasks.")] = 0,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The new JSONL file; its trees lie beside it.")
    ] = Path("tasks.jsonl"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace --out's file, once there are tasks.")
    ] = False,
    from_history: Annotated[
        bool, typer.Option("--from-history", help="Bug-fix commits of --repo, not new bugs.")
    ] = False,
    operator: Annotated[
        list[str] | None, typer.Option(help="Only this kind of bug; may be repeated.")
    ] = None,
    tests: Annotated[
        list[str] | None, typer.Option(help="Only this test file or folder; may be repeated.")
    ] = None,
    install: Annotated[
        list[str] | None,
        typer.Option(help="A command that builds the environment; may be repeated."),
    ] = None,
    interpreter: Annotated[
        str, typer.Option(help="The tasks' Python: 'base', this one, or a version such as 3.12.")
    ] = "base",
    grade: Annotated[
        str, typer.Option(help="Tasks that the grader confirms: all, sample (one in 10), none.")
    ] = "all",
    show_failing: Annotated[
        bool,
        typer.Option("--show-failing", help="Leave half of the failing tests for agents to see."),
    ] = False,
    concurrency: options.TasksPerCore = options.NUM_CORES,
    sandbox: options.Sandbox = "auto",
) -> None:
    """Make tasks by breaking a project in ways that its own tests find.

    Example: coding-gym tasks synthesize --pypi cachetools==8.0.0 -n 20 --out bugs.jsonl
    """
    _check(repo, pypi, grade, from_history=from_history)
    if from_history and show_failing:
        raise InvalidArgumentError("--show-failing is for new bugs, not for --from-history")
    backend = options.parse_sandbox(sandbox)
    # Before anything is fetched.
    operators = () if from_history else check_operators(operator or ())
    common: dict[str, Any] = {
        "install_commands": tuple(install or ()),
        "interpreter": interpreter,
    }

    def make(trees: Path, on_progress: Callable[[Progress], None]) -> tuple[Task, ...]:
        run: dict[str, Any] = {"sandbox": backend, "on_progress": on_progress}
        if from_history:
            return tasks_from_history(repo or "", num_tasks, **common, **run)
        project = _project(repo, pypi, trees, backend)
        if not pypi or install:
            project = replace(project, **common)
        return synthesize(
            replace(project, interpreter=interpreter, tests=tuple(tests or ())),
            num_tasks,
            seed=seed,
            operators=operators,
            num_workers=concurrency,
            grade_every=_GRADE_EVERY[grade],
            shows_failing=show_failing,
            **run,
        )

    begin = "looking at the commits" if from_history else "looking at the tests"
    output = Output(out, replace=force)
    begin = f"fetching {pypi}, and {begin}" if pypi else begin
    made, progress = _written(make, output, num_tasks, begin)
    console = terminal()
    console.print(f"{len(made)} of {num_tasks} tasks in {out} ({summary(progress)})")
    console.print(f"check them:  coding-gym validate {shlex.quote(str(out))}")


def _written(make: _Make, output: Output, n: int, begin: str) -> tuple[tuple[Task, ...], Progress]:
    """Makes tasks and writes them, and returns them with what was done for them.

    Where it is interrupted or fails, the tasks until then are written to a file that is new.

    Raises:
        typer.Exit: There are none, or Ctrl-C was pressed.
    """
    errors = terminal(stderr=True)
    last = Progress()
    try:
        errors.print(begin)
        with output, LineProgress(errors, n) as bar:

            def keep(progress: Progress) -> None:
                nonlocal last
                last = progress
                bar.show(summary(progress), len(progress.tasks))

            try:
                made = make(output.staging, keep)
            except BaseException:
                if last.tasks and not output.file.exists():
                    output.write(last.tasks)
                    errors.print(f"wrote {len(last.tasks)} of {n} tasks to {output.file}")
                raise
            if made:
                output.write(made)
    except KeyboardInterrupt:
        errors.print("stopped")
        raise typer.Exit(INTERRUPTED) from None
    if not made:
        errors.print(f"no tasks, and nothing was written: {summary(last)}")
        raise typer.Exit(1)
    return made, last


def _check(repo: Path | None, pypi: str | None, grade: str, *, from_history: bool) -> None:
    if (repo is None) == (pypi is None):
        raise InvalidArgumentError("give one of --repo and --pypi")
    if grade not in _GRADE_EVERY:
        raise InvalidArgumentError(f"--grade must be all, sample or none, got {grade!r}")
    if from_history and repo is None:
        raise InvalidArgumentError("--from-history needs --repo; a distribution has no history")


def _project(
    repo: Path | None, pypi: str | None, trees: Path, sandbox: str | Mapping[str, Any]
) -> Project:
    if pypi is None:
        name, folder = copy_project(repo or "", trees)
        return Project(name=name, folder=folder)
    backend = sandbox if isinstance(sandbox, str) else str(sandbox.get("name", "auto"))
    name, version, folder = download(pypi, trees, sandbox=backend)
    return Project(name=name, folder=folder, version=version, install_commands=(_INSTALL_PYPI,))


def summary(progress: Progress) -> str:
    """Returns the counts of a synthesis in one line, without those that are 0."""
    counts = {name: value for name, value in vars(progress).items() if name != "tasks"}
    parts = [f"{name.removeprefix('num_')}: {value}" for name, value in counts.items() if value]
    return ", ".join(parts) or "no place can be broken in the requested ways"
