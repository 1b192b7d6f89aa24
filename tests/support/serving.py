"""A server of episodes on a thread, and one that is a process of its own."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import uvicorn
from waiting import wait_until

from coding_gym.serve.app import Server
from coding_gym.serve.sessions import Sessions

_MAIN = "from coding_gym.cli.app import main; main()"
TOKENS = {"one": "first-secret", "two": "second-secret"}


@contextmanager
def serve_app(app: Any) -> Iterator[str]:
    """Serves an application on a thread; gives the URL. Requests wait until it has started."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        wait_until(lambda: server.started or not thread.is_alive())
        assert thread.is_alive(), "the application did not start"
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def served(sessions: Sessions, **settings: Any) -> AbstractContextManager[str]:
    """Serves sessions on a thread; gives the URL."""
    return serve_app(Server(sessions, TOKENS, **settings).app)


@contextmanager
def command(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Runs ``coding-gym serve``; gives the process, the URL and the token that it prints."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if k != "CODING_GYM_TOKEN"}
    with subprocess.Popen(
        [sys.executable, "-c", _MAIN, "serve", "--port", str(port), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
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
