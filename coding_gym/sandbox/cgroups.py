"""Control groups (version 2) for sandboxes, where a part of the hierarchy was delegated to us.

A group bounds the memory, the processes and the processor time of a whole sandbox, which resource
limits of single processes cannot. A group that holds processes cannot pass its controllers on. So
the first use moves this process and its children into a group of their own, one level down, unless
the delegated group holds other processes too.

    <delegated group>/            memory, pids and cpu for the groups below
        coding_gym-<identity>/    this process and its children, moved here by the first use
        sandbox-<identity>-<n>/   one per sandbox, removed with it, or by a later process
"""

import contextlib
import errno
import itertools
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from coding_gym.errors import SandboxError
from coding_gym.sandbox.inside import proc_stat
from coding_gym.sandbox.ownership import identity, sweep
from coding_gym.sandbox.spec import SandboxLimits

CONTROLLERS = ("cpu", "memory", "pids")
_HIERARCHY = Path("/sys/fs/cgroup")
_PERIOD_US, _MIN_QUOTA_US = 100_000, 1_000
_END_TIMEOUT_S, _PAUSE_S = 5.0, 0.002
_OPTIONAL = frozenset({"memory.swap.max"})  # there is none without swap accounting
_HOW_TO = "start it with `systemd-run --user --scope -p Delegate=yes -- …`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """Whether sandboxes can have groups.

    Attributes:
        folder: The group below which they are made; None where they cannot.
        detail: That group, or the reason with a remedy, one line.
    """

    folder: Path | None
    detail: str


class Group:
    """The group of one sandbox, which is made, with the contents of its files by name.

    Raises:
        OSError: The kernel refuses.
    """

    def __init__(self, path: Path, settings: Mapping[str, str]) -> None:
        self.path = path
        path.mkdir()
        try:
            for name, value in settings.items():
                if name not in _OPTIONAL or (path / name).exists():
                    (path / name).write_text(value, encoding="ascii")
        except OSError:
            self.close()
            raise

    def add(self, pid: int) -> None:
        """Moves a process into the group; its later children start there."""
        (self.path / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def open_entrance(self) -> int:
        """Returns a descriptor; a process that writes ``0`` to it moves itself into the group.

        Raises:
            SandboxError: The group is gone.
        """
        try:
            return os.open(self.path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            raise SandboxError(f"no control group for a sandbox: {error}") from error

    def close(self) -> None:
        """Kills the group's processes and removes it; idempotent."""
        end_group(self.path)


def settings(limits: SandboxLimits) -> dict[str, str]:
    """Returns the contents of the files of a group that has these limits."""
    wanted = {
        "memory.max": str(limits.memory_bytes),
        "memory.swap.max": "0",
        # Its first process is one of them.
        "pids.max": str(limits.num_processes + 1),
    }
    if limits.num_cpus is not None:
        quota_us = max(_MIN_QUOTA_US, int(limits.num_cpus * _PERIOD_US))
        wanted["cpu.max"] = f"{quota_us} {_PERIOD_US}"
    return wanted


def make_group(limits: SandboxLimits) -> Group | None:
    """Returns a group for a sandbox; None where groups are unavailable.

    Raises:
        SandboxError: The group could not be made.
    """
    folder = delegation().folder
    if folder is None:
        return None
    name = f"sandbox-{identity()}-{next(_numbers)}"
    try:
        return Group(folder / name, settings(limits))
    except OSError as error:
        raise SandboxError(f"no control group for a sandbox: {error}") from error


def end_group(folder: Path) -> None:
    """Kills the processes of a group and removes it; idempotent."""
    deadline = time.monotonic() + _END_TIMEOUT_S
    with contextlib.suppress(OSError):
        _kill_all(folder)
        while _stays(folder) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            _kill_all(folder)


def _stays(folder: Path) -> bool:
    """Removes a group; returns whether it stays because processes are in it."""
    try:
        folder.rmdir()
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def _kill_all(folder: Path) -> None:
    try:
        (folder / "cgroup.kill").write_text("1", encoding="ascii")
    except OSError:  # before Linux 5.14: one by one, and again for the processes that they started
        for pid in _read(folder / "cgroup.procs").split():
            if pid != "0":  # a process of another pid namespace; for `kill`, our own group
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


def delegation() -> Delegation:
    """Returns where this process may make groups; only the first call looks and moves it."""
    return _find(os.getpid())


_numbers = itertools.count()


@cache
def _find(_pid: int) -> Delegation:
    lines = _read("/proc/self/cgroup").splitlines()
    own = [line.removeprefix("0::") for line in lines if line.startswith("0::")]
    return find_delegation(_HIERARCHY, own[0] if own else "/")


def find_delegation(hierarchy: Path, own: str) -> Delegation:
    """Returns the delegation of a process in the group ``own`` of a hierarchy."""
    if not (hierarchy / "cgroup.controllers").exists():
        detail = f"none for sandboxes: {hierarchy} is not the hierarchy of version 2"
        return Delegation(folder=None, detail=detail)
    here = hierarchy / own.lstrip("/")
    if here.name.startswith("coding_gym-"):  # a parent of ours, or we before an exec, moved there
        here = here.parent
    try:
        obstacle = _obstacle(here, is_topmost=here == hierarchy)
        if not obstacle:
            remove_leftovers(here)
            _step_down(here)
    except OSError as error:
        obstacle = str(error)
    if obstacle:
        return Delegation(folder=None, detail=f"none for sandboxes: {obstacle}; {_HOW_TO}")
    return Delegation(folder=here, detail=f"sandboxes have groups of their own below {here}")


def remove_leftovers(here: Path) -> None:
    """Removes the groups of processes that are gone.

    The processes of a sandbox are killed. Children of a dead owner are not, and keep its group.
    """
    sweep(here, "sandbox-*-*", end_group)
    sweep(here, "coding_gym-*-*", _stays)


def _obstacle(here: Path, *, is_topmost: bool) -> str:
    """Returns the reason why no groups can be made below a group; "" where they can."""
    there = _read(here / "cgroup.controllers").split()
    lacking = [name for name in CONTROLLERS if name not in there]
    if lacking:
        return f"{here} has no {' and no '.join(lacking)} controller"
    files = (here, here / "cgroup.procs", here / "cgroup.subtree_control")
    if not all(os.access(name, os.W_OK) for name in files) or not _is_ours(here, is_topmost):
        return f"{here} was not delegated to this user"
    if _passes_controllers(here):
        return ""
    own = str(os.getpid())
    others = [pid for pid in _read(here / "cgroup.procs").split() if own not in _ancestry(pid)]
    return f"other processes are in {here}, such as {others[0]}" if others else ""


def _is_ours(here: Path, is_topmost: bool) -> bool:
    """Whether a writable group was delegated to us.

    Root can write all groups. systemd marks those that it delegates; the topmost group of a
    container has no mark.
    """
    if os.geteuid() != 0:
        return True
    if is_topmost and (here / "cgroup.type").exists():  # the host's own has none
        return True
    for mark in ("trusted.delegate", "user.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(here, mark) == b"1":
                return True
    return False


def _passes_controllers(here: Path) -> bool:
    return set(CONTROLLERS) <= set(_read(here / "cgroup.subtree_control").split())


def _step_down(here: Path) -> None:
    """Moves this process and its children to a leaf, and hands the controllers down."""
    if _passes_controllers(here):
        return
    leaf = Group(here / f"coding_gym-{identity()}", {})
    for pid in _read(here / "cgroup.procs").split():
        with contextlib.suppress(ProcessLookupError):
            leaf.add(int(pid))
    enabled = " ".join(f"+{name}" for name in CONTROLLERS)
    (here / "cgroup.subtree_control").write_text(enabled, encoding="ascii")


def _ancestry(pid: str) -> Iterator[str]:
    """Yields a process and those above it."""
    while pid != "0":
        yield pid
        pid = (proc_stat.fields(pid) or "00")[proc_stat.PARENT]


def _read(path: Path | str) -> str:
    """Returns a file's text; nothing where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
