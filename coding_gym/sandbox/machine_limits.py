"""Whether this machine's limits leave room for many sandboxes at a time."""

import os
import resource
from dataclasses import dataclass
from pathlib import Path

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
        has: What it is.
        needs: What it should be at least.
        remedy: The command that raises it.
    """

    limit: str
    has: int
    needs: int
    remedy: str


def shortages(num_episodes: int) -> tuple[Shortage, ...]:
    """Returns the limits that so many sandboxes open at a time would meet."""
    wanted = {
        resource.RLIMIT_NOFILE: (_OWN_DESCRIPTORS + _DESCRIPTORS * num_episodes, "n"),
        # Root is held to none.
        resource.RLIMIT_NPROC: (_num_threads() + _PROCESSES * num_episodes, "u"),
    }
    names = {resource.RLIMIT_NOFILE: "open files", resource.RLIMIT_NPROC: "processes"}
    if os.geteuid() == 0:
        del wanted[resource.RLIMIT_NPROC]
    found = []
    for kind, (needs, option) in wanted.items():
        soft, hard = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY and soft < needs:
            is_allowed = hard == resource.RLIM_INFINITY or hard >= needs
            remedy = f"run `ulimit -{option} {needs}` in the shell that starts the trainer"
            if not is_allowed:
                item = {"n": "nofile", "u": "nproc"}[option]
                remedy = f"put `* - {item} {needs}` into /etc/security/limits.conf, log in again"
            found.append(Shortage(limit=names[kind], has=soft, needs=needs, remedy=remedy))
    return (*found, *_namespace_shortages(num_episodes))


def _namespace_shortages(num_episodes: int) -> list[Shortage]:
    # One set per sandbox, and one for the process that opens them.
    needs = num_episodes + 2
    found = []
    for kind in _NAMESPACES:
        name = f"user.max_{kind}_namespaces"
        try:
            has = int((Path("/proc/sys") / name.replace(".", "/")).read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
        if has < needs:
            remedy = f"run `sudo sysctl -w {name}={max(needs, 65536)}`"
            found.append(Shortage(limit=name, has=has, needs=needs, remedy=remedy))
    return found


def _num_threads() -> int:
    """Returns how many threads this user runs, which count as processes."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if entry.stat().st_uid == os.getuid():
                text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                count += int(text.rpartition(")")[2].split()[17])
        except OSError:
            continue
    return count
