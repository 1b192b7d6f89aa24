"""Servers of OpenEnv, on a thread or in a process."""

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from sandbox_fixtures import wait_until

_MAIN = "from coding_gym.cli.app import main; main()"


@contextmanager
def serve_app(app: Any) -> Iterator[str]:
    """Serves an application on a thread; yields the URL. Requests wait until it has started."""
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


@contextmanager
def command(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Runs ``coding-gym serve``; yields the process and the URL that it prints."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    argv = [sys.executable, "-c", _MAIN, "serve", "--port", str(port), *arguments]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http\S+", process.stdout.readline())
            assert found, process.communicate()
            yield process, found[0]
        finally:
            process.kill()
