"""Folders and groups that belong to a process, and the removal of those of dead processes.

The name of each holds its owner's `identity`: the boot of the machine, the pid namespace, the pid
and the start time. A pid that is used again is no longer the owner. The owner may still be alive if
the boot or the pid namespace is another one, as in two containers that share a folder; nothing of
such a process is ever removed.
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
# The user of sandboxes of root: no distribution has an account of this number.
UNPRIVILEGED = 64998
_START_TIME = 19  # of the fields of /proc/PID/stat that follow the name: the 22nd of proc(5)


def identity() -> str:
    """Returns a name for this process: ``<boot and pid namespace>-<pid>-<start time>``."""
    return f"{_pid_namespace()}-{os.getpid()}-{start_time(os.getpid())}"


def is_gone(name: str) -> bool:
    """Whether a name holds the `identity` of a process that has certainly ended."""
    found = _IDENTITY.search(name)
    if found is None or found[1] != _pid_namespace():
        return False
    return start_time(int(found[2])) != found[3]


def start_time(pid: int) -> str:
    """Returns when a process started, in clock ticks since boot; "" if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[_START_TIME]  # a name may hold anything, also ")"


def _pid_namespace() -> str:
    """Returns a digest of the boot and the pid namespace; "" if the system is not Linux."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        namespace = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return ""
    return hashlib.sha256(f"{boot} {namespace}".encode()).hexdigest()[:16]


def remove_folder(folder: Path) -> None:
    """Removes a folder and everything in it, as far as possible; does nothing if it is missing.

    Folders without permissions, and folders nested deeper than a path can name, go too.
    """
    files.remove_tree(str(folder))


@cache
def sweep_once(folder: Path, pattern: str, _pid: int) -> None:
    """Removes this user's folders whose owners are gone, the first time that a process asks for it.

    Args:
        folder: Their parent; it need not exist.
        pattern: A glob that matches their names.
    """
    for path in folder.glob(pattern):
        try:
            is_ours = path.lstat().st_uid == os.geteuid()
        except FileNotFoundError:  # another process swept it
            continue
        if is_ours and is_gone(path.name):
            remove_folder(path)


def make_folder(kind: str) -> Path:
    """Returns a new temporary folder; removes those of the same kind whose owners are gone."""
    sweep_once(Path(tempfile.gettempdir()), f"coding_gym-{kind}-*", os.getpid())
    return Path(tempfile.mkdtemp(prefix=f"coding_gym-{kind}-{identity()}-")).resolve()


# Before Linux 6.6 a tmpfs holds no user extended attributes, and without them an overlay can
# neither remove nor replace a folder of its lower layers. There the changes of a sandbox go to an
# upper folder in the user's cache. It is removed when the sandbox closes. The zygote of a killed
# owner removes all of the owner's, and the next owner those that even the zygote left.


def uppers_folder() -> Path:
    """Returns the folder for the upper folders of this process, which need not exist yet."""
    return platformdirs.user_cache_path("coding_gym") / "uppers" / identity()


def make_upper(owner: tuple[int, int]) -> Path:
    """Returns a new folder for the changes of one sandbox, with ``upper`` and ``work`` in it."""
    ours = uppers_folder()
    sweep_once(ours.parent, "*", os.getpid())
    for path in (ours.parent, ours):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=ours))
    for path in (folder, folder / "upper", folder / "work"):
        path.mkdir(mode=0o755, exist_ok=True)
        os.chown(path, *owner)
    return folder


def remove_uppers() -> None:
    """Removes all upper folders of this process, whose sandboxes have ended."""
    with contextlib.suppress(PermissionError):  # the process changed its user meanwhile
        if uppers_folder().exists():
            remove_folder(uppers_folder())
