"""``coding-gym tasks synthesize``: tasks from a project of yours, or of the package index."""

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress as Bar

from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.errors import InvalidArgumentError
from coding_gym.task import Task
from coding_gym.tasks.synthesis import (
    Progress,
    Project,
    copy_project,
    download,
    synthesize,
    tasks_from_history,
    write_rows,
)

_INSTALL_PYPI = "python -m pip install --quiet pytest --editable ."
_GRADE_EVERY = {"all": 1, "sample": 10, "none": 0}


def synthesize_tasks(
    repo: Annotated[
        Path | None, typer.Option(help="A project's folder; of a git repository the last commit.")
    ] = None,
    pypi: Annotated[
        str | None, typer.Option(help="NAME==VERSION: a source distribution, tests included.")
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="How many tasks.")] = 200,
    seed: Annotated[int, typer.Option(help="Decides which tasks.")] = 0,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The JSONL file; its trees lie beside it.")
    ] = Path("tasks.jsonl"),
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
    interpreter: Annotated[str, typer.Option(help="'base', or a version such as 3.12.")] = "base",
    grade: Annotated[
        str, typer.Option(help="Tasks that the grader confirms: all, sample (one in 10), none.")
    ] = "all",
    workers: options.Workers = None,
    sandbox: options.Sandbox = "auto",
) -> None:
    """Make tasks by breaking a project in ways that its own tests find."""
    _check(repo, pypi, grade, from_history=from_history)
    options.check_writable(out)
    console = terminal()
    common: dict[str, Any] = {
        "install_commands": tuple(install or ()),
        "interpreter": interpreter,
    }
    run: dict[str, Any] = {"sandbox": options.parse_sandbox(sandbox)}
    with Bar(console=console, transient=True) as bars:
        bar = bars.add_task("looking at the tests", total=n)

        def show(progress: Progress) -> None:
            said = f"{progress.num_tried} tried, {progress.num_found} found by tests; tasks"
            bars.update(bar, completed=progress.num_tasks, description=said)

        run["on_progress"] = show
        if from_history:
            made = tasks_from_history(repo or "", n, **common, **run)
        else:
            project = _project(repo, pypi, out, run["sandbox"])
            if not pypi or install:
                project = replace(project, **common)
            made = synthesize(
                replace(project, interpreter=interpreter, tests=tuple(tests or ())),
                n,
                seed=seed,
                operators=tuple(operator or ()),
                num_workers=workers or os.cpu_count() or 1,
                grade_every=_GRADE_EVERY[grade],
                **run,
            )
    write_rows(made, out)
    for line in _summary(made, n, out):
        console.print(line)
    if not made:
        raise typer.Exit(1)


def _check(repo: Path | None, pypi: str | None, grade: str, *, from_history: bool) -> None:
    if (repo is None) == (pypi is None):
        raise InvalidArgumentError("give one of --repo and --pypi")
    if grade not in _GRADE_EVERY:
        raise InvalidArgumentError(f"--grade must be all, sample or none, got {grade!r}")
    if from_history and repo is None:
        raise InvalidArgumentError("--from-history needs --repo; a distribution has no history")


def _project(
    repo: Path | None, pypi: str | None, out: Path, sandbox: str | Mapping[str, Any]
) -> Project:
    trees = out.parent / f"{out.stem}-trees"
    if pypi is None:
        name, folder = copy_project(repo or "", trees)
        return Project(name=name, folder=folder)
    backend = sandbox if isinstance(sandbox, str) else str(sandbox.get("name", "auto"))
    name, version, folder = download(pypi, trees, sandbox=backend)
    return Project(name=name, folder=folder, version=version, install_commands=(_INSTALL_PYPI,))


def _summary(tasks: Sequence[Task], n: int, out: Path) -> Iterator[str]:
    for label, number in sorted(Counter(task.difficulty for task in tasks).items()):
        if label:
            yield f"{label:<8} {number}"
    short = "" if len(tasks) == n else f"; {n} were asked for, and the project does not hold more"
    yield f"{len(tasks)} tasks in {out}{short}"
    if tasks:
        yield f"check them:  coding-gym validate {shlex.quote(str(out))}"
