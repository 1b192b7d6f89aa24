"""Killed runs resume without partial files, and count no attempt twice."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sandbox_fixtures import wait_until

from coding_gym.run_folder import RunFolder

_COMMAND = [sys.executable, "-c", "from coding_gym.cli.app import main; main()", "eval"]


def _num_files(run: Path) -> int:
    folder = run / "attempts"
    return len(os.listdir(folder)) if folder.exists() else 0  # noqa: PTH208 - polled


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    ("num_kills", "num_tasks", "attempts"),
    [
        pytest.param(2, 4, 5, marks=pytest.mark.slow),
        pytest.param(20, 40, 25, marks=pytest.mark.nightly),
    ],
)
def test_killed_run_counts_each_attempt_once(
    num_kills: int,
    num_tasks: int,
    attempts: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temporary, out = tmp_path / "tmp", tmp_path / "run"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    rng = random.Random(0)
    new_run = ["--agent", "noop", "--num-tasks", str(num_tasks), "--attempts", str(attempts)]
    verdicts: dict[Path, int] = {}
    for _ in range(num_kills):
        options = ["--resume"] if (out / "config.json").exists() else new_run
        run = subprocess.Popen([*_COMMAND, "--out", str(out), *options])
        share = num_tasks * attempts // (num_kills + 1)
        threshold = _num_files(out) + rng.randrange(share)

        def is_due(run: subprocess.Popen[bytes] = run, threshold: int = threshold) -> bool:
            return _num_files(out) > threshold or run.poll() is not None

        wait_until(is_due, timeout_s=120)
        run.send_signal(signal.SIGKILL)
        run.wait()
        for file, changed in verdicts.items():
            assert file.stat().st_mtime_ns == changed  # not run again
        verdicts = {file: file.stat().st_mtime_ns for file in (out / "attempts").glob("[!.]*")}
    subprocess.run([*_COMMAND, "--out", str(out), "--resume"], check=True)
    keys = [(record.task_id, record.attempt) for record in RunFolder.open(out).trajectories()]
    assert len(keys) == len(set(keys)) == num_tasks * attempts
    assert all(file.stat().st_mtime_ns == changed for file, changed in verdicts.items())
    assert _num_files(out) == num_tasks * attempts  # and no unfinished files
    wait_until(lambda: not any(temporary.iterdir()), timeout_s=60)
