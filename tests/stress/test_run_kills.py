"""A run that is killed over and over: each attempt counts once, and nothing is left behind."""

import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from coding_gym.rollout import RunFolder

pytestmark = pytest.mark.nightly

_ATTEMPTS, _TASKS, _KILLS = 25, 40, 20
_PR_SET_CHILD_SUBREAPER = 36
_RUN = f"""
import sys
from pathlib import Path
from coding_gym.evaluation import evaluate
from coding_gym.tasks import load_tasks
out = Path(sys.argv[1])
is_there = (out / "config.json").exists()
tasks = load_tasks(limit={_TASKS})
evaluate("noop", out, tasks=tasks, attempts={_ATTEMPTS}, concurrency=8, resume=is_there)
"""


def _size(out: Path) -> int:
    """Returns the bytes of a run's records, however many files hold them."""
    size = 0
    for path in out.rglob("*.json*"):
        with suppress(FileNotFoundError):  # it was renamed
            size += path.stat().st_size
    return size


def _orphans() -> list[str]:
    """Returns the command lines of all processes below this one."""
    found, waiting = [], [os.getpid()]
    while waiting:
        pid = waiting.pop()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            below = [int(child) for child in task.read_text().split()]
            waiting += below
            found += [Path(f"/proc/{child}/cmdline").read_text() for child in below]
    return found


@pytest.mark.timeout(1500)
def test_a_killed_run_counts_attempts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    chance = random.Random(0)
    out = tmp_path / "run"
    before = len(_orphans())
    for _ in range(_KILLS):
        run = subprocess.Popen([sys.executable, "-c", _RUN, str(out)])
        start, end = _size(out), time.monotonic() + 60
        wanted = start + chance.randrange(1, 9000)  # a row has some 300 bytes
        while _size(out) < wanted and run.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
        run.wait()
    subprocess.run([sys.executable, "-c", _RUN, str(out)], check=True)
    keys = [(record.task_id, record.attempt) for record in RunFolder.open(out).trajectories()]
    assert len(keys) == len(set(keys)) == _TASKS * _ATTEMPTS
    end = time.monotonic() + 10
    while len(_orphans()) > before and time.monotonic() < end:
        os.waitpid(-1, os.WNOHANG)
        time.sleep(0.1)
    assert len(_orphans()) <= before, _orphans()
    assert list(temporary.iterdir()) == []
