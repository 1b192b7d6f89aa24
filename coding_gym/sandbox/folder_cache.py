"""Folders that are either whole or not there, shared by all processes of one user."""

from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from coding_gym.sandbox.removal import remove_folder

_PARTIAL = ".partial"


class FolderCache:
    """Keeps built folders by key.

    A folder is built under another name and renamed when it is done, while a lock on its key is
    held: a killed build leaves nothing that is taken for whole, and two processes build once.

    Args:
        folder: Where the folders lie; created when the first is built.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, key: str) -> Path:
        """Returns where the folder of ``key`` is, or will be."""
        return self._folder / key

    def get(self, key: str, build: Callable[[Path], None]) -> Path:
        """Returns the folder of ``key``; has ``build`` fill a new empty one where there is none.

        What ``build`` raises goes through, and its folder is removed.
        """
        final = self.path(key)
        if final.is_dir():
            return final
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._lock(key):
            if final.is_dir():  # built by another process while this one waited
                return final
            self._sweep(key)
            partial = self._folder / f"{key}{_PARTIAL}"
            try:
                partial.mkdir()
                build(partial)
                partial.rename(final)
            finally:
                remove_folder(partial)
        return final

    def _sweep(self, mine: str) -> None:
        """Removes what killed builds left: every partial folder whose lock nobody holds."""
        for left in self._folder.glob(f"*{_PARTIAL}"):
            key = left.name.removesuffix(_PARTIAL)
            if key == mine:
                remove_folder(left)
                continue
            try:
                with self._lock(key, timeout_s=0):
                    remove_folder(left)
            except Timeout:
                continue

    def _lock(self, key: str, timeout_s: float = -1) -> FileLock:
        return FileLock(self._folder / f"{key}.lock", timeout=timeout_s)
