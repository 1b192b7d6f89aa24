"""``coding-gym view`` and ``show``: display runs in a browser, an HTML file or the terminal."""

import os
import socket
import webbrowser
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.cli.serve import run_server
from coding_gym.viewer.terminal import episode_parts, read_episode


def view(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders, or folders that contain them; default: 'runs'."),
    ] = None,
    port: options.Port = 7575,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
    tasks: Annotated[
        list[str] | None, typer.Option(help="Task source for gold patches; may be repeated.")
    ] = None,
    static: Annotated[
        Path | None, typer.Option(help="Write the runs to this HTML file; start no server.")
    ] = None,
) -> None:
    """Display runs in a browser on this machine, with live updates.

    To use a browser on another machine, open an SSH tunnel: ssh -L 7575:127.0.0.1:7575 HOST

    Example: coding-gym view runs/a runs/b --static report.html
    """
    from coding_gym.viewer.one_file import write_static_report  # takes long to import
    from coding_gym.viewer.pages import Runs
    from coding_gym.viewer.server import make_app

    folders = runs or [Path("runs")]
    if static is not None:
        num_episodes = write_static_report(folders, static, tasks or ())
        terminal().print(f"wrote {num_episodes} episodes to {static}")
        return
    all_runs = Runs(folders, tasks or ())
    app, address = make_app(all_runs), f"http://127.0.0.1:{port}/"
    with socket.create_server(("127.0.0.1", port)) as listener:
        for folder, problem in all_runs.problems.items():
            terminal(stderr=True).print(f"{folder} is skipped: {problem}")
        terminal().print(f"{len(all_runs.by_id)} runs at {address} (Ctrl-C to end)")
        if open_:
            webbrowser.open(address)
        run_server(app, listener)


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
    record = read_episode(run, task, attempt)
    os.environ.setdefault("LESS", "-FRX")  # keeps colours; no pager if the text fits on the screen
    console = terminal()
    pager: Any = console.pager(styles=True) if console.is_terminal else nullcontext()
    with pager:
        for part in episode_parts(record):
            console.print(part)
