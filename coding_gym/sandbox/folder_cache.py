"""Cached folders that are complete or absent, shared by all processes of one user."""

import fcntl
import hashlib
import json
import os
import secrets
import struct
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from filelock import FileLock, Timeout

from coding_gym.sandbox.ownership import remove_folder

PARTIAL = ".partial"
USED = ".used"
_MAX_USED_BYTES = 4096
_IN_USE = "in-use"
_NUM_FILES = 64  # each new lock takes the kernel time for all locks of its file
_FLOCK = "hhqqi4x"  # struct flock: kind, origin, first byte, number of bytes, pid, padding


class CacheUses:
    """The entries of a cache that this process uses, as long as this object lives.

    An entry's name is its path in the cache. It stands for one byte of one of a few lock files. A
    process that uses the entry holds a shared lock on that byte; removing the entry needs an
    exclusive one. The kernel drops the locks with the process and all its forks, however they end,
    and they hold in every container that shares the folder. Such locks exist on Linux only;
    elsewhere no entry counts as used. All methods raise OSError where the cache is not accessible.

    Args:
        root: The cache folder.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / _IN_USE
        self._names: set[str] = set()
        self._files: dict[Path, int] = {}
        self._lock = Lock()

    def note(self, name: str) -> None:
        """Marks an entry as used by this process; waits while it is being removed."""
        with self._lock:
            if name in self._names:
                return
            path, byte = self._place(name)
            if path not in self._files:
                self._files[path] = file = _open(path)
                weakref.finalize(self, os.close, file)
            _lock(self._files[path], byte, fcntl.F_RDLCK, "F_OFD_SETLKW")
            self._names.add(name)

    def is_used(self, name: str) -> bool:
        """Returns whether a process uses an entry; takes no lock."""
        path, byte = self._place(name)
        if not path.exists():
            return False
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _lock(file, byte, fcntl.F_WRLCK, "F_OFD_GETLK") == fcntl.F_RDLCK
        finally:
            os.close(file)

    @contextmanager
    def unused(self, name: str) -> Iterator[bool]:
        """Locks an entry, so that no process starts to use it; yields False if one uses it."""
        path, byte = self._place(name)
        file = _open(path)
        try:
            is_unused = False
            with suppress(BlockingIOError):
                _lock(file, byte, fcntl.F_WRLCK, "F_OFD_SETLK")
                is_unused = True
            yield is_unused
        finally:
            os.close(file)

    def _place(self, name: str) -> tuple[Path, int]:
        """Returns the file and the byte that stand for an entry."""
        digest = hashlib.sha256(name.encode()).digest()
        return self._folder / f"{digest[7] % _NUM_FILES}.lock", int.from_bytes(digest[:7])


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)


def _lock(file: int, byte: int, kind: int, how: str) -> int:
    """Sets a lock, or looks for one that conflicts; returns the kind of lock that is there."""
    if not hasattr(fcntl, how):
        return kind
    wanted = struct.pack(_FLOCK, kind, os.SEEK_SET, byte, 1, 0)
    found: int = struct.unpack(_FLOCK, fcntl.fcntl(file, getattr(fcntl, how), wanted))[0]
    return found


class FolderCache:
    """Keeps built folders by key.

    A folder is built under another name and renamed when it is done, while a lock on its key is
    held: the folder of a killed build is never used, and two processes build once.

    Args:
        folder: Where the folders lie; created when the first is built.
        uses: Notes the folders that this process uses, for the garbage collection of a cache
            whose root holds ``folder``; None for a cache without one.
    """

    def __init__(self, folder: Path, uses: CacheUses | None = None) -> None:
        self._folder = folder
        self._uses = uses

    def path(self, key: str) -> Path:
        """Returns where the folder of ``key`` is, or will be."""
        return self._folder / key

    def get(
        self,
        key: str,
        build: Callable[[Path], None],
        *,
        user: str = "",
        on_wait: Callable[[], None] | None = None,
    ) -> Path:
        """Returns the folder of ``key``; calls ``build`` with a new one if there is none.

        An exception of ``build`` passes through, and its folder is removed.

        Args:
            key: Letters, digits and dashes.
            build: Fills an empty folder.
            user: The task or image that needs it, listed by ``coding-gym cache``.
            on_wait: Called once if another process or thread is building it.
        """
        final = self.path(key)
        if self._uses is not None:
            with suppress(OSError):  # a read-only cache loses nothing either
                self._uses.note(f"{self._folder.name}/{key}")
        if not final.is_dir():
            self._folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(self._folder)
            with self._held(key, on_wait):
                if not final.is_dir():  # else built by another process while this one waited
                    self._build(key, build, final)
        if self._uses is not None:
            mark_used(final, user)
        return final

    def _build(self, key: str, build: Callable[[Path], None], final: Path) -> None:
        # Never the name of a killed build, whose processes may still write there.
        partial = self._folder / f"{key}.{secrets.token_hex(4)}{PARTIAL}"
        try:
            partial.mkdir()
            build(partial)
            partial.rename(final)
        finally:
            remove_folder(partial)

    @contextmanager
    def _held(self, key: str, on_wait: Callable[[], None] | None) -> Iterator[None]:
        lock = key_lock(self._folder, key)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if on_wait is not None:
                on_wait()
            lock.acquire()
        try:
            yield
        finally:
            lock.release()


def content_key(*facts: object) -> str:
    """Returns a key made of facts that determine a folder's content; JSON must hold them."""
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]


def key_lock(folder: Path, key: str) -> FileLock:
    """Returns the lock that is held while the folder of ``key`` is built or removed.

    Its file is never removed: else two processes could hold the lock.
    """
    return FileLock(folder / f"{key}.lock")


def remove_leftovers(folder: Path) -> int:
    """Removes what killed builds left in the folder of a `FolderCache`; returns their number."""
    count = 0
    for left in folder.glob(f"*{PARTIAL}"):
        stem = left.name.removesuffix(PARTIAL)
        with (
            suppress(Timeout),
            key_lock(folder, stem.rpartition(".")[0] or stem).acquire(timeout=0),
        ):
            left.unlink() if left.is_file() else remove_folder(left)
            count += 1
    return count


def mark_used(entry: Path, user: str) -> None:
    """Remembers the time of an entry's last use, and its first users.

    The time is that of a file beside the entry, whose own times belong to its content.
    """
    path = entry.with_name(f"{entry.name}{USED}")
    with suppress(OSError):  # a read-only cache works as well
        known = path.read_text(encoding="utf-8") if path.exists() else ""
        line = f"{' '.join(user.split())}\n"
        if user and line not in known.splitlines(keepends=True) and len(known) < _MAX_USED_BYTES:
            with path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(line)
        else:
            path.touch()
