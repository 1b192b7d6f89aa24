"""Control groups (version 2) for sandboxes, where a part of the hierarchy was delegated to us.

A group bounds what resource limits cannot: the memory, processes and processor time of all the
processes of a sandbox together. The kernel lets groups that hold processes have no controllers for
groups below them, so this needs a group of our own whose processes can be moved one further down.
That is done where nobody but this process and its children would be moved; elsewhere nothing is
touched.

    <delegated group>/               memory, pids and cpu for the groups below
        coding_gym-<identity>/    this process
        sandbox-<identity>-<n>/   one per sandbox, removed when that ends

Groups that a killed process left are found by their names, by the next one.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from coding_gym.sandbox import cgroup_files
from coding_gym.sandbox.processes import identity, is_gone
from coding_gym.sandbox.spec import SandboxLimits

CONTROLLERS = ("cpu", "memory", "pids")
_HIERARCHY = Path("/sys/fs/cgroup")
_PERIOD_US, _MIN_QUOTA_US = 100_000, 1_000
_OPTIONAL = frozenset({"memory.swap.max"})  # there is none without swap accounting
_HOW_TO = "start it with `systemd-run --user --scope -p Delegate=yes -- …`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """Whether sandboxes can have groups.

    Attributes:
        folder: The group below which they are made; None where they cannot.
        detail: Which that is, or why not and what would help, one line.
    """

    folder: Path | None
    detail: str


class Group:
    """The group of one sandbox.

    Args:
        folder: Made by this call.
        settings: What is written to the group's files, by name.

    Raises:
        OSError: The kernel refuses.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        cgroup_files.make(folder)
        try:
            for name, value in settings.items():
                is_optional = name in _OPTIONAL
                with contextlib.suppress(*((FileNotFoundError,) if is_optional else ())):
                    cgroup_files.write(folder / name, value)
        except OSError:
            cgroup_files.remove(folder)
            raise

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._folder

    def add(self, pid: int) -> None:
        """Moves a process into the group; what it starts from then on is born there."""
        cgroup_files.write(self._folder / "cgroup.procs", str(pid))

    def open_entrance(self) -> int:
        """Returns a descriptor; a process that writes ``0`` to it moves itself into the group."""
        return os.open(self._folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Ends what is left in the group and removes it; fine where it is gone."""
        cgroup_files.remove(self._folder)


def settings(limits: SandboxLimits) -> dict[str, str]:
    """Returns what to write to the files of a group that has these limits."""
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
    """Returns a group for a sandbox; None where groups cannot be had.

    Raises:
        OSError: They can, but this one could not be made.
    """
    folder = delegation().folder
    if folder is None:
        return None
    name = f"sandbox-{identity()}-{next(_numbers)}"
    return Group(folder / name, settings(limits))


def delegation() -> Delegation:
    """Returns where this process may make groups; looks, and moves this process, only once."""
    return _find(os.getpid())


_numbers = itertools.count()


@cache
def _find(_pid: int) -> Delegation:
    try:
        return find_delegation(_HIERARCHY, _own_group())
    except OSError as error:
        return Delegation(folder=None, detail=f"none for sandboxes: {error}; {_HOW_TO}")


def find_delegation(hierarchy: Path, own: str) -> Delegation:
    """Returns the delegation of a process in the group ``own`` of a hierarchy."""
    if not (hierarchy / "cgroup.controllers").exists():
        detail = f"none for sandboxes: {hierarchy} is not the hierarchy of version 2"
        return Delegation(folder=None, detail=detail)
    here = hierarchy / own.lstrip("/")
    if here.name.startswith("coding_gym-"):  # a parent of ours, or we before an exec, moved there
        here = here.parent
    lacking = set(CONTROLLERS) - set(cgroup_files.read(here / "cgroup.controllers").split())
    if lacking:
        detail = f"none for sandboxes: {here} has no {' and no '.join(sorted(lacking))}"
        return Delegation(folder=None, detail=f"{detail} controller; {_HOW_TO}")
    files = (here, here / "cgroup.procs", here / "cgroup.subtree_control")
    if not all(os.access(name, os.W_OK) for name in files) or not _is_ours(
        here, is_topmost=here == hierarchy
    ):
        detail = f"none for sandboxes: {here} was not delegated to this user"
        return Delegation(folder=None, detail=f"{detail}; {_HOW_TO}")
    sweep(here)
    if not set(CONTROLLERS) <= set(cgroup_files.read(here / "cgroup.subtree_control").split()):
        strangers = _strangers(here)
        if strangers:
            detail = f"none for sandboxes: other processes are in {here}, such as {strangers[0]}"
            return Delegation(folder=None, detail=f"{detail}; {_HOW_TO}")
        _step_down(here)
    return Delegation(folder=here, detail=f"sandboxes have groups of their own below {here}")


def _is_ours(here: Path, *, is_topmost: bool) -> bool:
    """Whether a group that may be written was also meant to be.

    Root may write them all. systemd marks those that it hands over; the topmost one of a container
    has no mark, and no siblings either.
    """
    if os.geteuid() != 0:
        return True
    if is_topmost and (here / "cgroup.type").exists():  # the host's own has none
        return True
    return any(_mark(here, kind) == b"1" for kind in ("trusted", "user"))


def _mark(here: Path, kind: str) -> bytes:
    try:
        return os.getxattr(here, f"{kind}.delegate")
    except OSError:
        return b""


def _step_down(here: Path) -> None:
    """Moves this process and its children to a leaf, and hands the controllers down."""
    leaf = here / f"coding_gym-{identity()}"
    cgroup_files.make(leaf)
    for pid in cgroup_files.read(here / "cgroup.procs").split():
        with contextlib.suppress(ProcessLookupError):
            cgroup_files.write(leaf / "cgroup.procs", pid)
    cgroup_files.write(
        here / "cgroup.subtree_control", " ".join(f"+{name}" for name in CONTROLLERS)
    )


def _strangers(here: Path) -> list[int]:
    """Returns the processes of a group that are neither this one nor below it."""
    pids = [int(pid) for pid in cgroup_files.read(here / "cgroup.procs").split()]
    return [pid for pid in pids if os.getpid() not in _ancestry(pid)]


def _ancestry(pid: int) -> Iterator[int]:
    while pid > 0:
        yield pid
        fields = cgroup_files.read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
        pid = int(fields[1]) if fields else 0


def sweep(here: Path) -> None:
    """Removes the groups of processes that are gone.

    With a sandbox's group what runs in it; a leaf may hold children of its process, which are
    somebody's own.
    """
    for kind, remove in (
        ("sandbox", cgroup_files.remove),
        ("coding_gym", cgroup_files.remove_empty),
    ):
        for folder in here.glob(f"{kind}-*-*"):
            if is_gone(folder.name):
                remove(folder)


def _own_group() -> str:
    """Returns the group of this process in the hierarchy of version 2."""
    for line in cgroup_files.read(Path("/proc/self/cgroup")).splitlines():
        number, _, group = line.split(":", 2)
        if number == "0":
            return group
    return "/"
