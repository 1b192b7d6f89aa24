"""A server of episodes on a thread, and one that is a process of its own."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from coding_gym.serve.app import Server
from coding_gym.serve.sessions import Sessions

_MAIN = "from coding_gym.cli.app import main; main()"
TOKENS = {"one": "first-secret", "two": "second-secret"}


@contextmanager
def served(sessions: Sessions, **settings: Any) -> Iterator[str]:
    """Serves on a thread; gives the URL."""
    server = Server(sessions, TOKENS, **settings)
    serving = uvicorn.Server(uvicorn.Config(server.app, port=0, log_level="error"))
    thread = threading.Thread(target=serving.run, daemon=True)
    thread.start()
    while not serving.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = serving.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        serving.should_exit = True
        thread.join()


@contextmanager
def command(port: int, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Runs ``coding-gym serve``; gives the process, the URL and the token that it prints."""
    environment = {k: v for k, v in os.environ.items() if k != "CODING_GYM_TOKEN"}
    with subprocess.Popen(
        [sys.executable, "-c", _MAIN, "serve", "--port", str(port), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment | {"PYTHONUNBUFFERED": "1", "COLUMNS": "200"},
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline() + process.stdout.readline()
            found = re.search(r"at (http\S+)\s+export CODING_GYM_TOKEN=(\S+)", said)
            assert found, said
            yield process, found[1], found[2]
        finally:
            process.kill()
