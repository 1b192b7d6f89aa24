"""``coding-gym tasks synthesize``: tasks from a project of yours."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from coding_gym.cli import options
from coding_gym.cli.console import INTERRUPTED, LineProgress, terminal
from coding_gym.errors import InvalidArgumentError
from coding_gym.synthesis import (
    Progress,
    Project,
    copy_project,
    synthesize,
    tasks_from_history,
)
from coding_gym.synthesis.mutants import check_operators
from coding_gym.synthesis.writing import staging, write_staged
from coding_gym.task import Task

_GRADE_EVERY = {"all": 1, "sample": 10, "none": 0}
_Make = Callable[[Path, Callable[[Progress], None]], tuple[Task, ...]]


def synthesize_tasks(
    repo: Annotated[
        Path, typer.Option(help="A project's folder; of a git repository the last commit.")
    ],
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
        Literal["all", "sample", "none"],
        typer.Option(help="Tasks that the grader confirms; a sample is one in 10."),
    ] = "all",
    show_failing: Annotated[
        bool,
        typer.Option("--show-failing", help="Leave half of the failing tests for agents to see."),
    ] = False,
    concurrency: options.TasksPerCore = options.NUM_CORES,
    sandbox: options.Sandbox = "auto",
) -> None:
    """Make tasks by breaking a project in ways that its own tests find.

    Example: coding-gym tasks synthesize --repo ~/src/till -n 20 --out bugs.jsonl
    """
    if from_history and show_failing:
        raise InvalidArgumentError("--show-failing is for new bugs, not for --from-history")
    backend = options.parse_sandbox(sandbox)
    # Before anything is fetched.
    operators = () if from_history else check_operators(operator or ())
    common: dict[str, Any] = {"install_commands": tuple(install or ()), "interpreter": interpreter}

    def make(trees: Path, on_progress: Callable[[Progress], None]) -> tuple[Task, ...]:
        run: dict[str, Any] = {"sandbox": backend, "on_progress": on_progress}
        if from_history:
            return tasks_from_history(repo, num_tasks, **common, **run)
        name, folder = copy_project(repo, trees)
        return synthesize(
            Project(name=name, folder=folder, tests=tuple(tests or ()), **common),
            num_tasks,
            seed=seed,
            operators=operators,
            num_workers=concurrency,
            grade_every=_GRADE_EVERY[grade],
            shows_failing=show_failing,
            **run,
        )

    progress = _written(make, out, num_tasks, replaces=force)
    console = terminal()
    console.print(f"{len(progress.tasks)} of {num_tasks} tasks in {out} ({summary(progress)})")
    console.print(f"check them:  coding-gym validate {shlex.quote(str(out))}")


def _written(make: _Make, out: Path, n: int, *, replaces: bool) -> Progress:
    """Makes tasks and writes them, and returns what was done for them.

    Where it is interrupted or fails, the tasks until then are written to a file that is new.

    Raises:
        typer.Exit: There are none, or Ctrl-C was pressed.
    """
    errors = terminal(stderr=True)
    last, is_complete = Progress(), False
    try:
        with staging(out, replaces=replaces) as trees, LineProgress(errors, n) as bar:

            def keep(progress: Progress) -> None:
                nonlocal last
                last = progress
                if len(last.tasks) > bar.tasks[0].completed:
                    bar.count(last.tasks[-1].task_id)
                bar.update(bar.bar, description=summary(last))

            try:
                make(trees, keep)
                is_complete = True
            finally:
                if last.tasks and (is_complete or not out.exists()):
                    write_staged(last.tasks, out, trees)
    except KeyboardInterrupt:
        errors.print(f"stopped after {len(last.tasks)} tasks")
        raise typer.Exit(INTERRUPTED) from None
    if not last.tasks:
        errors.print(f"no tasks, and nothing was written: {summary(last)}")
        raise typer.Exit(1)
    return last


def summary(progress: Progress) -> str:
    """Returns the counts of a synthesis in one line, without those that are 0."""
    counts = {name: value for name, value in vars(progress).items() if name != "tasks"}
    parts = [f"{name.removeprefix('num_')}: {value}" for name, value in counts.items() if value]
    return ", ".join(parts) or "no place can be broken in the requested ways"
