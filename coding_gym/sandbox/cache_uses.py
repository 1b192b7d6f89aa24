"""Who uses what of a cache: so that nothing is thrown away under a process that has it open."""

import fcntl
import os
import secrets
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

_FOLDER = "uses"
_GATE = "gate"


class CacheUses:
    """The entries of a cache that this process uses, told to others for as long as it lives.

    Each process has one file, which names what it uses and which it keeps locked. The lock ends
    with the process and all that it forked, however they end; whoever can take it knows that the
    file means nothing any more. Names are written with the gate shared and read with the gate
    closed, so that nobody starts to use what is just being removed.

    Args:
        root: The cache folder.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / _FOLDER
        self._names: set[str] = set()
        self._file: int | None = None
        self._lock = Lock()

    def note(self, name: str) -> None:
        """Tells that this process uses an entry from now on, until this object is gone.

        Args:
            name: The entry's path in the cache.

        Raises:
            OSError: The cache cannot be written to.
        """
        with self._lock:
            if name in self._names:
                return
            if self._file is None:
                self._file = self._register()
            with self._gate(fcntl.LOCK_SH):
                os.write(self._file, f"{name}\n".encode())
            self._names.add(name)

    @contextmanager
    def closed(self) -> Iterator[frozenset[str]]:
        """Keeps everyone from starting to use anything; gives what is in use, by all processes.

        Raises:
            OSError: The cache cannot be written to.
        """
        with self._gate(fcntl.LOCK_EX):
            yield self._in_use()

    def _register(self) -> int:
        """Makes this process's file and removes those of processes that are gone."""
        with self._gate(fcntl.LOCK_EX):
            self._in_use()
            path = self._folder / secrets.token_hex(8)
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
        # No unlink: a fork may hold the file on.
        weakref.finalize(self, os.close, file)
        return file

    def _in_use(self) -> frozenset[str]:
        names: set[str] = set()
        for path in self._folder.iterdir():
            if path.name == _GATE:
                continue
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    names |= set(file.read().decode().split("\n"))
                else:
                    path.unlink()
        return frozenset(names)

    @contextmanager
    def _gate(self, how: int) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        gate = os.open(self._folder / _GATE, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(gate, how)
            yield
        finally:
            os.close(gate)


_of_this_process: "weakref.WeakValueDictionary[Path, CacheUses]" = weakref.WeakValueDictionary()
_making = Lock()


def cache_uses(root: Path) -> CacheUses:
    """Returns what this process uses of a cache: one object however many ask, while any keeps it.

    Args:
        root: The cache folder, which need not exist yet.
    """
    with suppress(OSError):
        root = root.resolve()
    with _making:
        uses = _of_this_process.get(root)
        if uses is None:
            uses = _of_this_process[root] = CacheUses(root)
        return uses
