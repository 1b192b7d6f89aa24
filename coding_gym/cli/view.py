"""``coding-gym view`` and ``show``: display runs in a browser, an HTML file or the terminal."""

import os
import webbrowser
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from coding_gym.arguments import hint
from coding_gym.cli.console import terminal
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.rollout.run_folder import ATTEMPTS, list_attempts
from coding_gym.viewer.index import read_attempt
from coding_gym.viewer.terminal import episode_parts


def view(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders, or folders that contain them; default: 'runs'."),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 7575,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
    tasks: Annotated[
        list[str] | None, typer.Option(help="Task source for gold patches; may be repeated.")
    ] = None,
    static: Annotated[
        Path | None,
        typer.Option(help="Write the runs to this HTML file; start no server."),
    ] = None,
) -> None:
    """Display runs in a browser on this machine, with live updates.

    To use a browser on another machine, open an SSH tunnel: ssh -L 7575:127.0.0.1:7575 HOST

    Example: coding-gym view runs/a runs/b --static report.html
    """
    from coding_gym.viewer.one_file import write_static_report  # takes long to import
    from coding_gym.viewer.pages import Runs
    from coding_gym.viewer.server import serve

    if static is not None:
        num_episodes = write_static_report(runs or [Path("runs")], static, tasks or ())
        terminal().print(f"wrote {num_episodes} episodes to {static}")
        return
    all_runs = Runs(runs or [Path("runs")], tasks or ())
    address = f"http://127.0.0.1:{port}/"

    def on_start() -> None:
        for folder, problem in all_runs.problems.items():
            terminal(stderr=True).print(f"{folder} is skipped: {problem}")
        terminal().print(f"{len(all_runs.by_id)} runs at {address} (Ctrl-C to end)")
        if open_:
            webbrowser.open(address)

    serve(all_runs, port=port, on_start=on_start)


def show(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    task: Annotated[str, typer.Argument(help="Task id; optional if the run has one task.")] = "",
    attempt: Annotated[
        int | None, typer.Argument(help="Number of the attempt; default: the lowest.")
    ] = None,
) -> None:
    """Print an episode, its patch and its grade in a pager.

    Example: coding-gym show runs/a ledgerline-month-overlap
    """
    files = list_attempts(run / ATTEMPTS)
    first = dict(sorted(files, reverse=True))  # the lowest attempt of each task
    if not first:
        raise InvalidArgumentError(f"{run} has no attempts; name a run of coding-gym eval or grade")
    if not task and len(first) > 1:
        example = f"coding-gym show {run} {min(first)}"
        raise InvalidArgumentError(f"{run} has {len(first)} tasks; name a task: {example}")
    task = task or min(first)
    if task not in first:
        suggestion = hint(task, first)
        raise UnknownNameError(f"{run} has {len(first)} tasks, not {task!r}; {suggestion}")
    key = task, first[task] if attempt is None else attempt
    record = read_attempt(run / ATTEMPTS, files.get(key), key)
    os.environ.setdefault("LESS", "-FRX")  # keeps colours; no pager if the text fits on the screen
    console = terminal()
    pager: Any = console.pager(styles=True) if console.is_terminal else nullcontext()
    with pager:
        for part in episode_parts(record):
            console.print(part)
