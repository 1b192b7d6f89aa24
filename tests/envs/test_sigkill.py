"""After SIGKILL of the process that owns open episodes, nothing of theirs is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from processes import descendants, wait_gone

OWNER = """
import sys, gymnasium as gym
envs = [gym.make("coding_gym:CodingRepair-v0", disable_env_checker=True) for _ in range(3)]
for seed, env in enumerate(envs):
    env.reset(seed=seed)
    env.step('{"name": "shell", "arguments": {"cmd": "echo x > /tmp/x; echo y > y"}}')
print("open", flush=True)
sys.stdin.read()
"""
WAIT_S = 60.0  # two seconds are promised; a loaded machine gets more


def test_nothing_is_left_of_open_episodes(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o777)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(scratch), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        ours = descendants(owner.pid)
        assert len(ours) >= 3
        before = {p for p in (tmp_path / "cache").rglob("*") if "template" not in str(p)}
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert wait_gone(ours, WAIT_S) == []
    assert list(scratch.iterdir()) == []
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    after = {p for p in (tmp_path / "cache").rglob("*") if "template" not in str(p)}
    assert after <= before
