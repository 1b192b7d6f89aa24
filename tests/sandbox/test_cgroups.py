"""Sandboxes in control groups of a real hierarchy, where this machine lets one make a group."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from coding_gym.sandbox import SandboxLimits, SandboxSpec, cgroups, get_backend

pytestmark = pytest.mark.slow


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A group that counts as delegated to this process."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    places = [Path(line.split()[1]) for line in lines if line.split()[2] == "cgroup2"]
    folder = next(iter(places), Path("/nowhere")) / f"coding_gym-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no hierarchy of version 2 to make a group in: {error}")
    delegation = cgroups.Delegation(folder=folder, detail="here")
    monkeypatch.setattr(cgroups, "delegation", lambda: delegation)
    monkeypatch.setattr(cgroups, "settings", lambda _: {})  # may need controllers
    yield folder
    for below in folder.iterdir():
        if below.is_dir():
            cgroups.end_group(below)
    folder.rmdir()


@pytest.mark.parametrize("shell", ["fresh", "waiting", "persistent"])
def test_every_command_is_in_the_group_of_its_sandbox(shell: str, group: Path) -> None:
    with get_backend("namespace").open(SandboxSpec(shell=shell)) as sandbox:
        (own,) = group.glob("sandbox-*")
        for command in ("cat /proc/self/cgroup", "true; cat /proc/$$/cgroup"):
            assert f"/{own.name}\n" in sandbox.run(command).output
    assert not own.exists()


def test_settings_of_a_group_follow_the_limits() -> None:
    limits = SandboxLimits(memory_bytes=1 << 30, num_processes=64, num_cpus=1.5)
    assert cgroups.settings(limits) == {
        "memory.max": "1073741824",
        "memory.swap.max": "0",
        "pids.max": "65",
        "cpu.max": "150000 100000",
    }
