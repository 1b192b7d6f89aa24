"""``coding-gym view``: runs in a browser."""

import secrets
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from coding_gym.cli.console import terminal
from coding_gym.viewer.pages import Runs
from coding_gym.viewer.server import is_loopback, serve


def view(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of runs, or folders that hold such; by default 'runs'."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port.")] = 7575,
    token: Annotated[
        str | None,
        typer.Option(
            help="What a browser must know to see anything; made up where --host is not loopback."
        ),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Display runs in a browser, live while they go on."""
    if token is None:
        token = "" if is_loopback(host) else secrets.token_urlsafe(24)
    found = Runs(runs or [Path("runs")])
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{port}/" + (f"?token={token}" if token else "")

    def started() -> None:
        terminal().print(f"{len(found.by_id)} runs at {address} (Ctrl-C to end)")
        if open_:
            webbrowser.open(address)

    serve(found, host=host, port=port, token=token, on_start=started)
