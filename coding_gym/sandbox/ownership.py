"""Folders that belong to a process, and the removal of the folders of ended processes.

Each name contains its owner's `identity`: the boot of the machine, the pid namespace, the pid and
the start time, which distinguishes processes with a reused pid. Folders of another boot or pid
namespace, such as another container's, are never removed: their owner may be alive.
"""

import contextlib
import hashlib
import os
import re
import tempfile
from functools import cache
from pathlib import Path

import platformdirs

from coding_gym.sandbox.inside import files

_IDENTITY = re.compile(r"([0-9a-f]{16})-(\d+)-(\d+)")
# The uid of sandboxes that root opens: a uid that no distribution assigns to an account.
UNPRIVILEGED = 64998
_START_TIME = 19  # index in the fields of /proc/PID/stat after the name; number 22 in proc(5)


def identity() -> str:
    """Returns a name for this process: ``<boot and pid namespace>-<pid>-<start time>``."""
    return f"{_pid_namespace()}-{os.getpid()}-{start_time(os.getpid())}"


def is_gone(name: str) -> bool:
    """Whether a name holds the `identity` of a process that has certainly ended."""
    match = _IDENTITY.search(name)
    if match is None or match[1] != _pid_namespace():
        return False
    return start_time(int(match[2])) != match[3]


def start_time(pid: int) -> str:
    """Returns when a process started, in clock ticks since boot; "" if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[_START_TIME]  # the name may contain ")"


def _pid_namespace() -> str:
    """Returns a digest of the boot and the pid namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    namespace = Path("/proc/self/ns/pid").readlink()
    return hashlib.sha256(f"{boot} {namespace}".encode()).hexdigest()[:16]


def remove_folder(folder: Path) -> None:
    """Removes a folder and everything in it, as far as possible; does nothing if it is missing.

    This includes folders without permissions, and folders deeper than a path can be long.
    """
    files.remove_tree(str(folder))


@cache
def sweep_once(folder: Path, pattern: str, _pid: int) -> None:
    """Removes this user's folders whose owner process has ended; runs once per process.

    Args:
        folder: Their parent; it need not exist.
        pattern: A glob that matches their names.
        _pid: The id of this process, so that a fork sweeps again.
    """
    for path in folder.glob(pattern):
        try:
            belongs_to_user = path.lstat().st_uid == os.geteuid()
        except FileNotFoundError:  # another process swept it
            continue
        if belongs_to_user and is_gone(path.name):
            remove_folder(path)


def make_folder(kind: str) -> Path:
    """Returns a new temporary folder; removes those of the same kind whose owners have ended."""
    sweep_once(Path(tempfile.gettempdir()), f"coding_gym-{kind}-*", os.getpid())
    return Path(tempfile.mkdtemp(prefix=f"coding_gym-{kind}-{identity()}-")).resolve()


def cache_folder() -> Path:
    """Returns the user's cache folder, which only the user may enter; creates it if possible.

    Write access gives control of tasks, and of modules that are imported outside any sandbox.
    """
    folder = platformdirs.user_cache_path("coding_gym")
    with contextlib.suppress(OSError):  # a later write reports it
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
        if facts.st_uid == os.geteuid() and facts.st_mode & 0o077:
            folder.chmod(0o700)
    return folder


# Before Linux 6.6 a tmpfs holds no user extended attributes, and without them an overlay can
# neither remove nor replace a folder of its lower layers. On such kernels the changes of a sandbox
# are in an upper folder in the user's cache, removed when the sandbox closes. The zygote removes
# them after its owner is killed; the next start removes what remains.


def uppers_folder() -> Path:
    """Returns the folder for the upper folders of this process, which need not exist yet."""
    return platformdirs.user_cache_path("coding_gym") / "uppers" / identity()


def make_upper(owner: tuple[int, int]) -> Path:
    """Returns a new folder for the changes of one sandbox, with ``upper`` and ``work`` in it."""
    parent = uppers_folder()
    sweep_once(parent.parent, "*", os.getpid())
    cache_folder()
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent))
    for path in (folder, folder / "upper", folder / "work"):
        path.mkdir(mode=0o755, exist_ok=True)
        os.chown(path, *owner)
    return folder


def remove_uppers() -> None:
    """Removes all upper folders of this process; call it after its sandboxes have ended."""
    with contextlib.suppress(PermissionError):  # the process has changed its user
        if uppers_folder().exists():
            remove_folder(uppers_folder())
