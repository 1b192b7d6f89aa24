"""Cached folders, complete or absent, that a user's processes share; sandboxes that fill them."""

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from coding_gym.sandbox.ownership import remove_folder
from coding_gym.sandbox.protocol import Sandbox, SandboxBackend
from coding_gym.sandbox.spec import Mount, SandboxSpec

PARTIAL = ".partial"
LOCK = ".lock"
USED = ".used"  # the file's time is the time of the folder's last use
BUILT = "/opt/built"  # in a sandbox that fills a folder


class FolderCache:
    """A cache of folders, each of which is built once for its key.

    A folder is built under a temporary name and renamed when complete, so the folder of a killed
    build is never used. A lock on the key ensures that only one process builds the folder.

    Args:
        folder: The parent of the cached folders; created by the first build.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, key: str) -> Path:
        """Returns the path of the folder of ``key``, which need not exist yet."""
        return self._folder / key

    def get(self, key: str, build: Callable[[Path], None]) -> Path:
        """Returns the folder of ``key``; if it is missing, calls ``build`` with a new folder.

        If ``build`` raises an exception, the new folder is removed and the exception propagates.

        Args:
            key: The name of the folder, without ``/``; the key determines the content.
            build: Fills an empty folder.
        """
        final = self.path(key)
        if not final.is_dir():
            self._folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(self._folder)
            with key_lock(self._folder, key):
                if not final.is_dir():  # else another process has built it
                    self._build(key, build, final)
        with suppress(OSError):  # the cache may be read-only
            # Not the lock file, which some versions of filelock remove, nor the folder, whose time
            # is part of the cached content.
            final.with_name(f"{key}{USED}").touch()
        return final

    def remove(self, key: str, *, timeout_s: float = -1) -> None:
        """Removes the folder of ``key``, if it exists, even if a process uses it.

        Args:
            key: As for `get`.
            timeout_s: Seconds to wait for the end of a build; negative for no limit.

        Raises:
            Timeout: The folder is still being built.
            OSError: The folder cannot be renamed. Files that cannot be removed raise nothing;
                they stay under a temporary name.
        """
        trash = self._folder / f"{key}.{secrets.token_hex(4)}{PARTIAL}"
        with key_lock(self._folder, key).acquire(timeout=timeout_s):
            # Renamed first, so that later users build the folder again.
            with suppress(FileNotFoundError):
                self.path(key).rename(trash)
            self.path(f"{key}{USED}").unlink(missing_ok=True)
            remove_folder(trash)

    def _build(self, key: str, build: Callable[[Path], None], final: Path) -> None:
        # A new name, because processes of a killed build may still write to the previous folder.
        new_folder = self._folder / f"{key}.{secrets.token_hex(4)}{PARTIAL}"
        try:
            new_folder.mkdir()
            build(new_folder)
            new_folder.rename(final)
        finally:
            remove_folder(new_folder)


def content_key(*values: object) -> str:
    """Returns a key of 24 hex digits for JSON-native values that determine a folder's content."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:24]


def key_lock(folder: Path, key: str) -> FileLock:
    """Returns the lock that is held while the folder of ``key`` is built or removed."""
    return FileLock(folder / f"{key}{LOCK}")


def remove_leftovers(folder: Path) -> None:
    """Removes the partial folders of killed builds from the folder of a `FolderCache`."""
    for path in folder.glob(f"*{PARTIAL}"):
        stem = path.name.removesuffix(PARTIAL)
        with (
            suppress(Timeout),
            key_lock(folder, stem.rpartition(".")[0] or stem).acquire(timeout=0),
        ):
            path.unlink() if path.is_file() else remove_folder(path)


@contextmanager
def build_sandbox(
    backend: SandboxBackend, spec: SandboxSpec, folders: Mapping[str, Path]
) -> Iterator[Sandbox]:
    """Yields a sandbox whose commands write to host folders.

    The folders do not change after the sandbox is closed, but are not trusted: symbolic links in
    the folders may lead to host files.

    Args:
        backend: Opens the sandbox.
        spec: The spec, to which mounts of the folders are added.
        folders: Host folders by path in the sandbox, such as `BUILT`; missing ones are created.

    Raises:
        SandboxError: As `SandboxBackend.open`.
    """
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, *backend.owner())
    mounts = (
        Mount(source=folder, target=target, writable=True) for target, folder in folders.items()
    )
    with backend.open(replace(spec, mounts=(*spec.mounts, *mounts))) as sandbox:
        yield sandbox
