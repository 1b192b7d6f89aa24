"""Names of processes: they tell a live owner from a dead one, although pids are used again."""

import hashlib
import os
import re
from pathlib import Path

from coding_gym.sandbox.zygote import proc_stat

_IDENTITY = re.compile(r"([0-9a-f]{16})-(\d+)-(\d+)")


def identity() -> str:
    """Returns a name for this process, for what it owns: ``<place>-<pid>-<start time>``.

    The place stands for the boot of the machine and the pid namespace. Two containers that share
    a folder have different ones, and the pids of one say nothing in the other.
    """
    return f"{_place()}-{os.getpid()}-{start_time(os.getpid())}"


def is_gone(name: str) -> bool:
    """Whether a name holds the `identity` of a process that has certainly ended.

    False for a process of another place, since it may be alive.
    """
    found = _IDENTITY.search(name)
    if found is None or found[1] != _place():
        return False
    return start_time(int(found[2])) != found[3]


def start_time(pid: int) -> str:
    """Returns when a process started, in clock ticks since boot; "" where there is no such one."""
    fields = proc_stat.fields(pid)
    return fields[proc_stat.START_TIME] if fields else ""


def _place() -> str:
    """Returns a digest of the boot and the pid namespace; "" where the system is not Linux."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        namespace = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return ""
    return hashlib.sha256(f"{boot} {namespace}".encode()).hexdigest()[:16]
