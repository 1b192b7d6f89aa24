"""``coding-gym tasks synthesize``: tasks from a project of yours, or of the package index."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    for line in _lines(made, num_tasks, out, progress):
        console.print(line)


def _written(make: _Make, output: Output, n: int, begin: str) -> tuple[tuple[Task, ...], Progress]:
    """Makes tasks and writes them, and returns them with what was done for them.

    Where it is interrupted or fails, the tasks until then are written to a file that is new.

    Raises:
        typer.Exit: There are none, or Ctrl-C was pressed; a message says so.
    """
    errors = terminal(stderr=True)
    last = Progress()
    kept = ""
    try:
        errors.print(begin)
        with output, LineProgress(errors, n) as bar:

            def keep(progress: Progress) -> None:
                nonlocal last
                last = progress
                bar.show(_counts(progress), len(progress.tasks))

            try:
                made = make(output.staging, keep)
            except BaseException:
                if last.tasks and not output.file.exists():
                    output.write(last.tasks)
                    kept = f"wrote {len(last.tasks)} of {n} tasks to {output.file}"
                raise
            if made:
                output.write(made)
    except KeyboardInterrupt:
        errors.print(f"stopped; {kept or 'nothing was written'}")
        raise typer.Exit(INTERRUPTED) from None
    except Exception:
        if kept:
            errors.print(f"failed; {kept}")
        raise
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


def _lines(tasks: Sequence[Task], n: int, out: Path, progress: Progress) -> Iterator[str]:
    for label, number in sorted(Counter(task.difficulty for task in tasks).items()):
        if label:
            yield f"{label:<8} {number}"
    short = "" if len(tasks) == n else f"; {n} were asked for, and there are no more"
    yield f"{len(tasks)} tasks in {out}{short}"
    if short:
        yield summary(progress)
    yield f"check them:  coding-gym validate {shlex.quote(str(out))}"


def summary(progress: Progress) -> str:
    """Returns how many places there were and why the rest makes no task, in one line."""
    if progress.num_commits:
        return _history_summary(progress)
    if not progress.num_tried:
        return "nothing that tests run can be broken in the ways that were asked for"
    return (
        f"{progress.num_sites} places can be broken; {_counts(progress)}; of these "
        f"{progress.num_left_out} left out (like another, too plain, or not observable), "
        f"{progress.num_invalid} not confirmed by the grader"
    )


def _history_summary(progress: Progress) -> str:
    idle = progress.num_commits - progress.num_sites
    plain = progress.num_tried - progress.num_failed - progress.num_found
    reasons = (
        (idle, "are merges, cannot be read, change many files, or not both Python code and tests"),
        (progress.num_failed, f"could not be run (the last: {progress.failure})"),
        (plain, "have no test that fails before and passes after, in a way that can be observed"),
        (progress.num_invalid, "were not confirmed by the grader"),
    )
    dropped = "; ".join(f"{number} {reason}" for number, reason in reasons if number)
    return f"of {progress.num_commits} commits, {dropped}"


def _counts(progress: Progress) -> str:
    """Returns how many changes were tried and how many the tests found."""
    return f"{progress.num_tried} tried, {progress.num_found} found by tests"
