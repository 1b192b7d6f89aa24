"""``coding-gym tasks synthesize``: makes tasks from a project."""

import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

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
from coding_gym.synthesis.mutants import check_kinds
from coding_gym.synthesis.writing import new_rows

_MAX_LISTED = 20  # dropped candidates to list per reason; for more, the number is printed


def synthesize_tasks(
    repo: Annotated[Path, typer.Option(help="Project folder, or a git repository (last commit).")],
    num_tasks: Annotated[
        int, typer.Option("--num-tasks", "-n", min=1, help="Number of tasks to make.")
    ] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the selection of bugs.")] = 0,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="JSONL file to create; the trees are next to it.")
    ] = Path("tasks.jsonl"),
    from_history: Annotated[
        bool, typer.Option("--from-history", help="Make tasks from bug-fix commits of --repo.")
    ] = False,
    kind: Annotated[
        list[str] | None, typer.Option(help="Insert only this kind of bug; may be repeated.")
    ] = None,
    tests: Annotated[
        list[str] | None, typer.Option(help="Run only this test file or folder; may be repeated.")
    ] = None,
    install: Annotated[
        list[str] | None,
        typer.Option(help="Command that installs the project and its tests; may be repeated."),
    ] = None,
    interpreter: Annotated[
        str, typer.Option(help="Python interpreter of the tasks: 'base' or a version.")
    ] = "base",
    show_failing: Annotated[
        bool, typer.Option("--show-failing", help="Keep half of the failing tests in the tree.")
    ] = False,
    concurrency: options.TasksPerCore = options.NUM_CORES,
    sandbox: options.Sandbox = "auto",
) -> None:
    """Make tasks by inserting bugs that the tests of a project detect.

    Example: coding-gym tasks synthesize --repo ~/src/till -n 20 --out bugs.jsonl
    """
    ignored = {"--kind": kind, "--tests": tests, "--seed": seed, "--show-failing": show_failing}
    ignored["--concurrency"] = concurrency != options.NUM_CORES
    names = ", ".join(name for name, value in ignored.items() if value)
    if from_history and names:
        raise InvalidArgumentError(f"--from-history does not use {names}; remove these options")
    backend = options.parse_sandbox(sandbox)
    kinds = check_kinds(kind or ())  # unknown kinds raise before the project is copied
    common: dict[str, Any] = {"install_commands": tuple(install or ()), "interpreter": interpreter}

    def make(trees: Path, progress: Progress) -> None:
        run: dict[str, Any] = {"sandbox": backend, "progress": progress}
        if from_history:
            tasks_from_history(repo, num_tasks, **common, **run)
            return
        name, folder = copy_project(repo, trees)
        synthesize(
            Project(name=name, folder=folder, tests=tuple(tests or ()), **common),
            num_tasks,
            seed=seed,
            kinds=kinds,
            num_workers=concurrency,
            shows_failing=show_failing,
            **run,
        )

    progress = _make_and_write(make, out, num_tasks)
    console = terminal()
    console.print(f"{out} contains {len(progress.tasks)} tasks; {num_tasks} were requested")
    console.print(f"check them:  coding-gym validate {shlex.quote(str(out))}")


def _make_and_write(make: Callable[[Path, Progress], None], out: Path, num_tasks: int) -> Progress:
    """Makes and writes tasks, and returns the final progress.

    The tasks made before an interrupt are kept.

    Raises:
        typer.Exit: No task was made, or Ctrl-C was pressed.
    """
    stderr = terminal(stderr=True)
    is_interrupted = False
    with LineProgress(stderr, num_tasks) as bar:

        def display(progress: Progress) -> None:
            if len(progress.tasks) > bar.tasks[0].completed:
                bar.count(progress.tasks[-1].task_id)
            num_tried = len(progress.tasks) + len(progress.dropped)
            bar.update(bar.bar, description=f"{num_tried}/{progress.num_candidates} tried")

        progress = Progress(on_change=display)
        try:
            with new_rows(out, progress) as trees:
                make(trees, progress)
        except KeyboardInterrupt:
            is_interrupted = True
    num_made = len(progress.tasks)
    _print_dropped(stderr, progress)
    if is_interrupted:
        result = f"{num_made} tasks are in {out}" if num_made else "nothing was written"
        stderr.print(f"interrupted; {result}")
        raise typer.Exit(INTERRUPTED)
    if not num_made:
        cause = ": no bug of these kinds can be inserted into this project"
        stderr.print(f"no task was made, so nothing was written{'' if progress.dropped else cause}")
        raise typer.Exit(1)
    return progress


def _print_dropped(console: Console, progress: Progress) -> None:
    """Prints dropped candidates with reasons; for a frequent reason, the number of candidates."""
    candidates = [(name, reason.partition("\n")[0]) for name, reason in progress.dropped]
    counts = Counter(reason for _, reason in candidates)
    lines = [(name, reason) for name, reason in candidates if counts[reason] <= _MAX_LISTED]
    lines += [(f"{n} dropped", text) for text, n in counts.most_common() if n > _MAX_LISTED]
    for subject, reason in lines:
        console.print(f"{subject}: {reason}")
