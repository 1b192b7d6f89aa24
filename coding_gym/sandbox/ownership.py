"""Makes folders that belong to a process, and removes the folders of ended processes.

The folders of a process are in one parent folder, which the process keeps locked. The kernel
releases the lock when the process ends, also for a process in another container or pid namespace.
"""

import atexit
import contextlib
import fcntl
import os
import tempfile
from functools import cache
from pathlib import Path

import platformdirs

from coding_gym.sandbox.inside import files

# The uid of sandboxes that root opens. Debian, RHEL and systemd (docs/UIDS-GIDS.md) assign neither
# this uid nor the following uids, which `landlock` uses, to accounts or services.
UNPRIVILEGED = 60706
_PREFIX = "coding-gym-process-"  # unlikely in names that users choose
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# atexit runs the last registration first: this function runs after the zygotes have ended.
_at_exit = contextlib.ExitStack()
atexit.register(_at_exit.close)


def unprivileged_owner() -> tuple[int, int]:
    """Returns the uid and gid of sandboxes of this process, and of their layers.

    Root uses one unprivileged user. Ordinary users, and root in a container that maps few users,
    run sandboxes as themselves.
    """
    kinds = ("uid", "gid")
    if os.geteuid() == 0 and all(outside_id(kind, UNPRIVILEGED) is not None for kind in kinds):
        return UNPRIVILEGED, UNPRIVILEGED
    return os.geteuid(), os.getegid()


def outside_id(kind: str, number: int) -> int | None:
    """Returns a ``uid`` or ``gid`` as the parent namespace numbers it; None if it is not mapped."""
    for line in Path(f"/proc/self/{kind}_map").read_text(encoding="ascii").splitlines():
        first, outer_first, count = (int(field) for field in line.split())
        if first <= number < first + count:
            return outer_first + number - first
    return None


def remove_folder(folder: Path) -> None:
    """Removes a folder with its content as far as possible; does nothing if it is missing.

    Folders without permissions, and trees deeper than the longest path, are removed as well.
    """
    files.remove_tree(str(folder))


def make_folder(kind: str) -> Path:
    """Returns a new temporary folder, which is removed when this process exits.

    The folders of a killed process are removed by the next process that makes a folder.
    """
    parent = process_folder(Path(tempfile.gettempdir()).resolve(), os.getpid())
    return Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=parent))


@cache
def process_folder(parent: Path, pid: int) -> Path:
    """Returns this process's folder in ``parent``; removes the folders of ended processes.

    Args:
        parent: Holds the folders of all processes of this user.
        pid: The id of this process; part of the cache key, so a fork gets a separate folder.
    """
    for path in parent.glob(f"{_PREFIX}*"):
        _remove_unlocked(path)
    while (folder := _make_locked(parent)) is None:
        pass
    _at_exit.callback(remove_unless_fork, folder, pid)
    return folder


def _make_locked(parent: Path) -> Path | None:
    """Returns a new locked folder; None if another process removes it before the lock.

    The descriptor stays open, also in a fork that outlives this process.
    """
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    with contextlib.suppress(FileNotFoundError, BlockingIOError), contextlib.ExitStack() as cleanup:
        descriptor = os.open(folder, _FOLDER)
        cleanup.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.chmod(0o711)  # sandboxes enter subfolders as other users
        cleanup.pop_all()
        return folder
    return None


def _remove_unlocked(folder: Path) -> None:
    """Removes a process's folder if the process has ended and the folder belongs to this user."""
    with contextlib.suppress(OSError):  # the folder is locked or gone, or another user's
        descriptor = os.open(folder, _FOLDER)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_uid == os.geteuid():
                remove_folder(folder)
        finally:
            os.close(descriptor)


def remove_unless_fork(folder: Path, pid: int) -> None:
    """Removes a folder if this process has the id ``pid``, so that a fork removes nothing."""
    if os.getpid() == pid:
        remove_folder(folder)


def cache_folder() -> Path:
    """Returns the user's cache folder, which only the user may enter; creates it if possible.

    Tasks, and modules that are imported outside any sandbox, are loaded from this folder.
    """
    folder = platformdirs.user_cache_path("coding_gym")
    with contextlib.suppress(OSError):  # a later write reports the error
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.stat()
        if info.st_uid == os.geteuid() and info.st_mode & 0o077:
            folder.chmod(0o700)
    return folder


def make_upper(owner: tuple[int, int]) -> Path:
    """Returns a new folder, in the user's cache, for the changes of one sandbox.

    The folder has subfolders ``upper`` and ``work``. Before Linux 6.6 a tmpfs has no user extended
    attributes, without which an overlay can neither remove nor replace a folder of a lower layer.
    """
    parent = cache_folder() / "uppers"
    parent.mkdir(mode=0o700, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=process_folder(parent, os.getpid())))
    for path in (folder, folder / "upper", folder / "work"):
        path.mkdir(mode=0o755, exist_ok=True)
        os.chown(path, *owner)
    return folder
