"""Control groups: how they live in a real hierarchy, and what is written in an imitated one.

A machine may have the second version's hierarchy without the controllers, or not for us; what a
group's settings do is the kernel's, and what we write is read back from plain files.
"""

import contextlib
import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from checks.debug import first_pid

from coding_gym.sandbox import SandboxLimits, SandboxSpec, cgroups
from coding_gym.sandbox.cgroups import CONTROLLERS, Delegation, Group, settings
from coding_gym.sandbox.inside import landlock_rules
from coding_gym.sandbox.landlock import LandlockBackend
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.ownership import identity
from coding_gym.sandbox.protocol import Promise


@pytest.fixture
def real() -> Iterator[Path]:
    """A group of our own in a real hierarchy; skips where none may be made."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    places = [Path(line.split()[1]) for line in lines if line.split()[2] == "cgroup2"]
    folder = next(iter(places), Path("/nowhere")) / f"coding_gym-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no hierarchy of version 2 to make a group in: {error}")
    yield folder
    for below in folder.iterdir():
        if below.is_dir():
            cgroups.end_group(below)
    folder.rmdir()


@pytest.fixture
def imitated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which new folders can be joined, as groups in a delegated group can."""
    mkdir = Path.mkdir

    def make(folder: Path, *arguments: Any, **options: Any) -> None:
        mkdir(folder, *arguments, **options)
        if folder.parent == tmp_path:
            (folder / "cgroup.procs").touch()

    monkeypatch.setattr(Path, "mkdir", make)
    for name, text in {
        "cgroup.controllers": "cpuset cpu io memory pids\n",
        "cgroup.subtree_control": "",
        "cgroup.procs": f"{os.getpid()}\n",
        "cgroup.type": "domain\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@contextlib.contextmanager
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["/bin/sleep", "300"]) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_group_holds_a_process_and_all_it_starts_and_ends_them(real: Path) -> None:
    group = Group(real / "sandbox-1-1-1", {})
    with sleeper() as process:
        group.add(process.pid)
        assert (group.path / "cgroup.procs").read_text().split() == [str(process.pid)]
        ended = os.pidfd_open(process.pid)
        group.close()
        try:
            assert select.select([ended], [], [], 10)[0], "the process goes on"
        finally:
            os.close(ended)
        process.wait()
    group.close()
    assert not group.path.exists()


def test_a_group_that_the_kernel_refuses_is_not_left(real: Path) -> None:
    with pytest.raises(OSError, match=r"no\.such\.file"):
        Group(real / "refused", {"memory.swap.max": "0", "no.such.file": "1"})
    assert not (real / "refused").exists()


def test_groups_of_processes_that_are_gone_are_swept_with_what_runs_in_them(real: Path) -> None:
    mine = identity()
    dead, killed = (f"{mine.split('-')[0]}-{pid}-1" for pid in (999999999, 999999998))
    for name in (f"sandbox-{dead}-0", f"coding_gym-{dead}", f"sandbox-{mine}-0", "other"):
        (real / name).mkdir()
    (real / f"coding_gym-{killed}").mkdir()
    with sleeper() as process, sleeper() as worker:
        (real / f"sandbox-{dead}-0" / "cgroup.procs").write_text(str(process.pid))
        (real / f"coding_gym-{killed}" / "cgroup.procs").write_text(str(worker.pid))
        cgroups.remove_leftovers(real)
        assert process.wait(10) == -9
        assert worker.poll() is None
        assert (real / f"coding_gym-{killed}").exists()
    cgroups.remove_leftovers(real)
    assert {path.name for path in real.iterdir() if path.is_dir()} == {f"sandbox-{mine}-0", "other"}


def test_where_the_kernel_ends_no_groups_their_processes_are_ended(tmp_path: Path) -> None:
    (tmp_path / "cgroup.kill").mkdir()  # nothing can be written to it
    with sleeper() as process:
        (tmp_path / "cgroup.procs").write_text(f"0\n{process.pid}\n")
        (tmp_path / "cgroup.events").write_text("populated 0\nfrozen 0\n")
        cgroups.end_group(tmp_path)
        assert process.wait(10) == -9


def test_settings_follow_the_limits() -> None:
    limits = SandboxLimits(memory_bytes=1 << 30, num_processes=64, num_cpus=1.5)
    assert settings(limits) == {
        "memory.max": "1073741824",
        "memory.swap.max": "0",
        "pids.max": "65",
        "cpu.max": "150000 100000",
    }
    assert "cpu.max" not in settings(SandboxLimits())
    assert settings(SandboxLimits(num_cpus=0.001))["cpu.max"] == "1000 100000"


def test_a_delegated_group_gets_a_leaf_and_passes_controllers_on(imitated: Path) -> None:
    found = cgroups.find_delegation(imitated, "/")
    assert found.folder == imitated
    leaf = imitated / f"coding_gym-{identity()}"
    assert (leaf / "cgroup.procs").read_text() == str(os.getpid())
    assert (imitated / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_a_process_that_was_moved_to_its_leaf_finds_the_group_above(imitated: Path) -> None:
    (imitated / "cgroup.subtree_control").write_text(" ".join(CONTROLLERS))
    (imitated / "coding_gym-1-1").mkdir()
    assert cgroups.find_delegation(imitated, "/coding_gym-1-1").folder == imitated


def test_a_group_with_other_processes_in_it_is_left_alone(imitated: Path) -> None:
    before = (imitated / "cgroup.procs").read_text() + "1\n"
    (imitated / "cgroup.procs").write_text(before)
    found = cgroups.find_delegation(imitated, "/")
    assert found.folder is None
    assert "other processes are in" in found.detail
    assert (imitated / "cgroup.procs").read_text() == before
    assert (imitated / "cgroup.subtree_control").read_text() == ""
    assert [path.name for path in imitated.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cpu pids\n", "has no memory controller; start it with"),
        (None, "is not the hierarchy of version 2"),
    ],
)
def test_what_a_group_lacks_is_named(imitated: Path, text: str | None, reason: str) -> None:
    (imitated / "cgroup.controllers").unlink()
    if text is not None:
        (imitated / "cgroup.controllers").write_text(text)
    found = cgroups.find_delegation(imitated, "/")
    assert (found.folder, reason in found.detail) == (None, True)


def test_root_takes_only_delegated_groups(imitated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (imitated / "some.service").mkdir()
    for name in ("cgroup.controllers", "cgroup.subtree_control", "cgroup.procs"):
        (imitated / "some.service" / name).write_text((imitated / name).read_text())
    found = cgroups.find_delegation(imitated, "/some.service")
    assert found.folder is None
    assert "was not delegated" in found.detail
    try:
        os.setxattr(imitated / "some.service", "user.delegate", b"1")
    except OSError as error:
        pytest.skip(f"no attributes of files in {imitated}: {error}")
    assert cgroups.find_delegation(imitated, "/some.service").folder is not None


@pytest.mark.parametrize("kind", [NamespaceBackend, LandlockBackend])
def test_the_first_process_of_a_sandbox_is_in_its_group_before_any_command(
    kind: type[NamespaceBackend] | type[LandlockBackend],
    imitated: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if kind is LandlockBackend and landlock_rules.abi() == 0:
        pytest.skip("the kernel does not enforce Landlock")
    monkeypatch.setattr(cgroups, "delegation", lambda: Delegation(folder=imitated, detail="here"))
    limits = SandboxLimits(memory_bytes=1 << 28, num_cpus=2)
    with kind().open(SandboxSpec(limits=limits)) as sandbox:
        (folder,) = imitated.glob("sandbox-*")
        # In a namespace sandbox it writes 0, itself.
        pid = int((folder / "cgroup.procs").read_text()) or first_pid(sandbox)
        assert "python" in Path(f"/proc/{pid}/cmdline").read_text()
        assert (folder / "memory.max").read_text() == str(1 << 28)
        assert (folder / "cpu.max").read_text() == "200000 100000"
        assert sandbox.run("echo ran").output == "ran\n"
    assert (folder / "cgroup.kill").read_text() == "1"
    assert Promise.CPU_LIMIT not in kind().probe().missing


@pytest.mark.parametrize("shell", ["fresh", "waiting", "persistent"])
def test_every_kind_of_shell_is_in_the_group_of_its_sandbox(
    shell: Literal["fresh", "waiting", "persistent"], real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "delegation", lambda: Delegation(folder=real, detail="here"))
    monkeypatch.setattr(cgroups, "settings", lambda _: {})
    with NamespaceBackend().open(SandboxSpec(shell=shell)) as sandbox:
        (group,) = real.glob("sandbox-*")
        for _ in range(2):
            assert f"/{group.name}\n" in sandbox.run("cat /proc/self/cgroup").output
        assert sandbox.run(f"cd /; grep -c {group.name} /proc/$$/cgroup").output == "1\n"
    assert not group.exists()


def test_without_group_no_sandbox_opens(imitated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Delegation(folder=imitated / "gone", detail="here")
    monkeypatch.setattr(cgroups, "delegation", lambda: missing)
    probe = NamespaceBackend().probe()
    assert not probe.available
    assert probe.detail.startswith("no control group for a sandbox: ")
