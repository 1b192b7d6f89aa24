"""``coding-gym serve``, and OpenEnv's server and client with repair episodes."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from episodes import FIX, SUBMIT, raising, returning, run_command, shell
from sandbox_fixtures import descendants, running, wait_gone, wait_until

pytest.importorskip("openenv", reason="needs pip install 'coding-gym[openenv]'")

import uvicorn
from websockets.exceptions import ConnectionClosed

from coding_gym.adapters.openenv import RepairAction, RepairClient, make_app
from coding_gym.errors import SandboxError

pytestmark = [
    pytest.mark.trainer,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of packages that OpenEnv imports
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

OPEN = "coding_gym.episode.config.open_sandbox"
MAIN = "from coding_gym.cli.app import main; main()"


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
    argv = [sys.executable, "-c", MAIN, "serve", "--port", str(port), *arguments]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            match = re.search(r"http\S+", process.stdout.readline())
            assert match, process.communicate()
            yield process, match[0]
        finally:
            process.kill()


def connect(url: str) -> Any:
    """Returns a client; its connection opens at the first call."""
    return RepairClient(base_url=url, message_timeout_s=120).sync()


@pytest.fixture
def url(tiny_row: dict[str, Any]) -> Iterator[str]:
    with serve_app(make_app(tasks=[tiny_row], max_concurrent_envs=3)) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    with connect(url) as connected:
        yield connected


def test_smoke_openenv(rows: Path) -> None:
    with command("--tasks", str(rows), "--max-turns", "5") as (_, url), connect(url) as client:
        client.reset(task_id="shapes-area")
        assert client.step(RepairAction(text=FIX)).reward == 0.0
        result = client.step(RepairAction(text=SUBMIT))
        assert (result.done, result.reward) == (True, 1.0)


def test_an_episode_is_played_over_the_socket(client: Any) -> None:
    start = client.reset(task_id="shapes-area", episode_id="mine")
    assert start.reward is None
    assert [message["role"] for message in start.observation.messages] == ["system", "user"]
    assert "area(3, 5) gives 8" in start.observation.text
    result = client.step(RepairAction(text=shell("cat shapes.py")))
    assert "width + height" in result.observation.text
    state = client.state()
    assert (state.episode_id, state.step_count, state.task_id) == ("mine", 1, "shapes-area")
    assert [tool["function"]["name"] for tool in state.tools] == ["shell", "apply_patch", "submit"]


def test_submit_and_stop_both_grade_the_tree(client: Any) -> None:
    for end in (RepairAction(text=SUBMIT), RepairAction(stop="enough")):
        client.reset()
        assert client.step(RepairAction(text=FIX)).reward == 0.0
        result = client.step(end)
        assert (result.done, result.reward, result.observation.resolved) == (True, 1.0, True)
        assert result.observation.truncated is bool(end.stop)


def test_a_lost_sandbox_has_no_reward(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OPEN, raising(SandboxError("no room")))
    client.reset(task_id="shapes-area")
    result = client.step(RepairAction(text=SUBMIT))
    assert (result.done, result.reward, result.observation.error) == (True, None, "no room")
    assert result.observation.mask_sample


def test_connections_are_independent_and_free_their_sandboxes(url: str) -> None:
    with connect(url) as first:  # starts processes that all sandboxes share
        first.reset(task_id="shapes-area")
        first.step(RepairAction(text=SUBMIT))
    before = set(descendants(os.getpid()))
    clients = [connect(url) for _ in range(3)]
    for client in clients:
        client.reset(task_id="shapes-area")
    for client, operator in zip(clients, "*-*", strict=True):
        client.step(RepairAction(text=returning(f"width {operator} height")))
    assert [client.step(RepairAction(text=SUBMIT)).reward for client in clients[:2]] == [1.0, 0.0]
    for client in clients:
        client.close()
    assert wait_gone(set(descendants(os.getpid())) - before, 30) == []


def test_ctrl_c_ends_the_server_and_its_sandboxes(rows: Path) -> None:
    with command("--tasks", str(rows)) as (process, url), connect(url) as client:
        client.reset(task_id="shapes-area")
        with ThreadPoolExecutor(1) as pool:
            step = pool.submit(client.step, RepairAction(text=shell("sleep 60")))
            wait_until(lambda: running("sleep", process.pid))
            pids = descendants(process.pid)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
            with pytest.raises((ConnectionClosed, OSError)):
                step.result()
        assert wait_gone(pids, 30) == []


@pytest.mark.parametrize(("host", "warns"), [("127.0.0.1", False), ("0.0.0.0", True)])  # noqa: S104
def test_listening_beyond_loopback_warns(
    rows: Path, host: str, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coding_gym.cli.serve.run_server", lambda *_, **__: None)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    printed = run_command("serve", "--tasks", rows, "--host", host, "--port", str(port))
    assert ("authentication" in printed) is warns
