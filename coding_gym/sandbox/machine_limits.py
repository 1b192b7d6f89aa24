"""Whether this machine's limits leave room for many sandboxes at a time."""

import os
import resource
from dataclasses import dataclass
from pathlib import Path

from coding_gym.sandbox.zygote import proc_stat

# Of the user who owns them, per sandbox: its first process, a shell, and what a test run starts.
_PROCESSES = 8
# Of the owner, per sandbox: its channel, and what one being opened needs besides.
_DESCRIPTORS = 4
_OWN_DESCRIPTORS = 64
_NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A limit that is too low.

    Attributes:
        limit: Its name.
        has: Its value.
        needs: The least value that would do.
        remedy: The command that raises it.
    """

    limit: str
    has: int
    needs: int
    remedy: str


def shortages(num_episodes: int) -> tuple[Shortage, ...]:
    """Returns the limits that so many sandboxes open at a time would meet."""
    files = _OWN_DESCRIPTORS + _DESCRIPTORS * num_episodes
    found = [_of_process("open files", resource.RLIMIT_NOFILE, files, "n", "nofile")]
    if os.geteuid() != 0:  # root is held to none
        processes = _num_threads() + _PROCESSES * num_episodes
        found.append(_of_process("processes", resource.RLIMIT_NPROC, processes, "u", "nproc"))
    found += [_of_namespaces(f"user.max_{kind}_namespaces", num_episodes) for kind in _NAMESPACES]
    return tuple(shortage for shortage in found if shortage is not None)


def _of_process(limit: str, kind: int, needs: int, option: str, item: str) -> Shortage | None:
    soft, hard = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY or soft >= needs:
        return None
    remedy = f"run `ulimit -{option} {needs}` in the shell that starts the trainer"
    if hard != resource.RLIM_INFINITY and hard < needs:
        remedy = f"put `* - {item} {needs}` into /etc/security/limits.conf, log in again"
    return Shortage(limit=limit, has=soft, needs=needs, remedy=remedy)


def _of_namespaces(name: str, num_episodes: int) -> Shortage | None:
    needs = num_episodes + 2  # one set per sandbox, and one for the process that opens them
    try:
        has = int((Path("/proc/sys") / name.replace(".", "/")).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    remedy = f"run `sudo sysctl -w {name}={max(needs, 65536)}`"
    return None if has >= needs else Shortage(limit=name, has=has, needs=needs, remedy=remedy)


def _num_threads() -> int:
    """Returns how many threads this user runs, which count as processes."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = entry.stat().st_uid == os.getuid()
        except OSError:  # it ended
            continue
        fields = proc_stat.fields(entry.name) if is_ours else []
        count += int(fields[proc_stat.NUM_THREADS]) if fields else 0
    return count
