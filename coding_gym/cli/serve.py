"""``coding-gym serve``: episodes for programs on other machines."""

import os
import secrets
import socket
from pathlib import Path
from typing import Annotated

from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.cli.options import LIMITS, RUN, TASKS, option
from coding_gym.errors import InvalidArgumentError
from coding_gym.serve.client import TOKEN

_SERVER = "Server"


def serve(
    tasks: options.Source = "bundled",
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    sandbox: options.Sandbox = "auto",
    tokenizer: Annotated[
        str | None, option(TASKS, help="Encodes observations; see docs/environment.md.")
    ] = None,
    command_timeout: options.CommandTimeout = 120.0,
    host: Annotated[
        str, option(_SERVER, help="Address to listen on; 0.0.0.0 for other machines.")
    ] = "127.0.0.1",
    port: Annotated[int, option(_SERVER, min=1, max=65535, help="Port to listen on.")] = 7576,
    tokens: Annotated[
        Path | None,
        option(_SERVER, help="A file with a line 'NAME TOKEN' for each client."),
    ] = None,
    max_sessions: Annotated[
        int, option(LIMITS, min=1, help="Most sessions at the same time.")
    ] = 1000,
    max_per_client: Annotated[
        int | None, option(LIMITS, min=1, help="Most sessions of one client; by default all.")
    ] = None,
    max_body: Annotated[int, option(LIMITS, min=1024, help="Most bytes of a request.")] = 1 << 23,
    idle: Annotated[
        float, option(LIMITS, min=1, help="Seconds without a call that close a session.")
    ] = 600.0,
    drain: Annotated[
        float, option(LIMITS, min=0, help="Seconds that sessions have after Ctrl-C or SIGTERM.")
    ] = 30.0,
    concurrency: Annotated[
        int,
        option(RUN, "--concurrency", "-c", min=1, help="Calls at the same time; others wait."),
    ] = 256,
) -> None:
    """Serve episodes over HTTP and WebSocket; see docs/serve.md.

    A client needs a token of --tokens, else of the variable CODING_GYM_TOKEN, else a printed one.
    `coding_gym.serve.RemoteEnv` is a client that is a Gymnasium environment.
    """
    from coding_gym.serve import app
    from coding_gym.serve.sessions import Sessions

    known, is_new = _tokens(tokens)
    source = options.task_source(tasks, repositories, environments)
    tokenizer_option = {"tokenizer": tokenizer} if tokenizer else {}
    sessions = Sessions(
        {
            "tasks": source.pop("source") if len(source) == 1 else _loaded(source),
            "sandbox": options.parse_sandbox(sandbox),
            "command_timeout_s": command_timeout,
            **tokenizer_option,
        },
        max_sessions=max_sessions,
        max_per_client=max_per_client or max_sessions,
        idle_s=idle,
    )
    server = app.Server(sessions, known, max_body_bytes=max_body, workers=concurrency)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        place = f"[{host}]" if ":" in host else host
        console = terminal()
        console.print(
            f"{len(sessions.task_ids)} tasks at http://{place}:{port}", style="bold", markup=False
        )
        if is_new:
            console.print(f"export {TOKEN}={next(iter(known.values()))}", markup=False)
        console.file.flush()
        app.run(server, sessions, listening, drain)


def _loaded(source: dict[str, object]) -> list[object]:
    from coding_gym.tasks import load_tasks

    return list(load_tasks(**source))  # type: ignore[arg-type]  # the options of the command


def _tokens(path: Path | None) -> tuple[dict[str, str], bool]:
    """Returns the tokens by the name of the client, and whether they were just made."""
    if path is None:
        token = os.environ.get(TOKEN, "").strip()
        return {"client": token or secrets.token_urlsafe(24)}, not token
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if words and not line.startswith("#"):
            if len(words) != 2 or words[0] in found or words[1] in found.values():
                raise InvalidArgumentError(
                    f"line {number} of {path} must be 'NAME TOKEN', each name and token once"
                )
            found[words[0]] = words[1]
    if not found:
        raise InvalidArgumentError(f"there is no line 'NAME TOKEN' in {path}")
    return found, False
