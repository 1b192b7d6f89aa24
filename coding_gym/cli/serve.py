"""``coding-gym serve``: serves episodes to other programs over OpenEnv's protocol."""

import os
import socket
from contextlib import suppress
from ipaddress import ip_address
from typing import Annotated, Any

import typer

from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.optional import import_extra


def serve(
    tasks: options.Source = "bundled",
    sandbox: options.Sandbox = "auto",
    toolset: options.Toolset = "nano",
    tool_format: options.ToolFormat = "auto",
    max_turns: options.MaxTurns = 50,
    max_sessions: Annotated[
        int, typer.Option(min=1, help="Maximum number of connections; others are refused.")
    ] = 8,
    host: Annotated[
        str, typer.Option(help="Address to listen on; there is no authentication.")
    ] = "127.0.0.1",
    port: options.Port = 8000,
) -> None:
    """Serve episodes to OpenEnv clients over WebSockets.

    Requires the extra `openenv`. Ctrl-C ends the server and its sandboxes.
    """
    from coding_gym.adapters.openenv import make_app

    app = make_app(
        max_concurrent_envs=max_sessions,
        tasks=options.task_source(tasks)["source"],
        sandbox=options.parse_sandbox(sandbox),
        toolset=toolset,
        tool_format=tool_format,
        max_turns=max_turns,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        if not ip_address(listener.getsockname()[0]).is_loopback:
            terminal(stderr=True).print(
                f"warning: anyone who reaches {host} can run commands in the sandboxes; there is "
                "no authentication",
                style="yellow",
            )
        address = f"[{host}]" if ":" in host else host
        terminal().print(f"serving http://{address}:{port}", style="bold")
        run_server(app, listener)


def run_server(app: Any, listener: socket.socket) -> None:
    """Serves an ASGI application until Ctrl-C or SIGTERM; then ends the process and sandboxes."""
    uvicorn = import_extra("uvicorn", "serve")
    # uvicorn's pings close the connection of a vanished client within 40 seconds.
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    with suppress(KeyboardInterrupt):  # uvicorn raises the signal again after its shutdown
        uvicorn.Server(config).run(sockets=[listener])
    # A thread that waits for a command cannot be cancelled; sandboxes end with the process.
    os._exit(0)
