"""A program of the host ends together with all processes that it started."""

import os
from pathlib import Path

import pytest
from sandbox_fixtures import wait_until

from coding_gym.sandbox.host_program import run_program


def test_a_timeout_kills_descendants(tmp_path: Path) -> None:
    command = "sleep 60 & echo $! > pid; wait"
    with pytest.raises(TimeoutError):
        run_program(["bash", "-c", command], cwd=tmp_path, env=dict(os.environ), timeout_s=0.5)
    stat = Path("/proc") / (tmp_path / "pid").read_text().strip() / "stat"
    wait_until(lambda: not stat.exists() or stat.read_text().split()[2] == "Z")
