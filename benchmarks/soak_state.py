"""What a process and its sandboxes hold of the machine, counted."""

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from fixtures import ENGINES, available_bytes, mounts, pidfds, tree, wait_gone

_SETTLE_S = 10.0
_CGROUPS = Path("/sys/fs/cgroup")
# Allocators keep some of what they were given once; a leak grows with each cycle.
_KIB_AT_ONCE, _KIB_PER_CYCLE = 8 << 10, 2
_SYSTEM_KIB_AT_ONCE, _SYSTEM_KIB_PER_CYCLE = 256 << 10, 64
_COUNTED = ("descriptors", "processes", "mounts", "server_mounts", "cgroups", "files")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Counts at one moment; memory in KiB.

    Attributes:
        descriptors: Of this process.
        processes: Of this one and all below it.
        mounts: That this process sees.
        server_mounts: That the zygote sees; 0 where only root may look.
        cgroups: On the whole machine, but for those of container engines.
        files: Temporary ones and those of the cache.
        owner_kib: Resident memory of this process.
        zygote_kib: Resident memory of all below it.
        available_kib: What the system can still give.
    """

    descriptors: int
    processes: int
    mounts: int
    server_mounts: int
    cgroups: int
    files: int
    owner_kib: int
    zygote_kib: int
    available_kib: int

    @classmethod
    def now(cls, folder: Path) -> "State":
        """Counts; ``folder`` holds temporary files and the cache."""
        pids = list(tree(os.getpid()))
        return cls(
            descriptors=len(list(Path("/proc/self/fd").iterdir())),
            processes=len(pids),
            mounts=len(mounts()),
            server_mounts=sum(len(mounts(pid)) for pid in pids[1:]),
            cgroups=sum(not ENGINES.search(str(p)) for p in _CGROUPS.rglob("cgroup.procs")),
            files=num_files(folder),
            owner_kib=_resident_kib(os.getpid()),
            zygote_kib=sum(_resident_kib(pid) for pid in pids[1:]),
            available_kib=available_bytes() >> 10,
        )

    def to_json(self) -> dict[str, int]:
        """Returns the counts as a JSON object."""
        return asdict(self)


def num_files(folder: Path) -> int:
    """Returns how many files and folders are below a folder, however they come and go."""
    return sum(len(names) + len(files) for _, names, files in os.walk(folder))


def settle() -> None:
    """Waits for processes of closed sandboxes, which end on their own."""
    pids = list(tree(os.getpid()))[3:]  # this one and the zygote's two stay
    descriptors = pidfds(pids)
    wait_gone(descriptors, _SETTLE_S)
    for descriptor in descriptors:
        os.close(descriptor)


def grown(before: State, after: State, num_cycles: int, *, is_alone: bool) -> list[str]:
    """Returns what should not have grown, in words.

    Args:
        before: What there was.
        after: What there is.
        num_cycles: How often a sandbox was opened and closed between them.
        is_alone: Whether nothing else runs here; if not, the system's memory says nothing.
    """
    problems = [
        f"{name}: {getattr(before, name)} before, {getattr(after, name)} after"
        for name in _COUNTED
        if getattr(after, name) > getattr(before, name)
    ]
    bound = _KIB_AT_ONCE + _KIB_PER_CYCLE * num_cycles
    for name in ("owner_kib", "zygote_kib"):
        more = getattr(after, name) - getattr(before, name)
        if more > bound:
            problems.append(f"{name} grew by {more}, more than {bound}")
    less = before.available_kib - after.available_kib
    bound = _SYSTEM_KIB_AT_ONCE + _SYSTEM_KIB_PER_CYCLE * num_cycles
    if is_alone and less > bound:
        problems.append(f"the system has {less} KiB less to give, more than {bound}")
    return problems


def _resident_kib(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0
