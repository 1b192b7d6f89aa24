"""What the layers of a spec are together: one tree of files, and a digest of it."""

import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from coding_gym.errors import SandboxError
from coding_gym.sandbox.containers.locks import SharedLock
from coding_gym.sandbox.spec import WORKDIR

_lock = SharedLock()
_digests: dict[tuple[str, int, int, int], bytes] = {}


def digest(layers: tuple[Path, ...]) -> bytes:
    """Returns what changes with anything that the layers hold.

    A folder is read once in the life of this process: layers are never written.

    Raises:
        SandboxError: One cannot be read.
    """
    try:
        with _lock:
            return b"".join(_digest(layer) for layer in layers)
    except OSError as error:
        raise SandboxError(f"a layer cannot be read: {error}") from error


def names(layers: tuple[Path, ...]) -> frozenset[str]:
    """Returns the paths of the union's folders and files, relative to the workspace.

    Raises:
        SandboxError: One cannot be read.
    """
    try:
        return frozenset(name for name, _ in _united(layers))
    except OSError as error:
        raise SandboxError(f"a layer cannot be read: {error}") from error


def add_to(tar: tarfile.TarFile, layers: tuple[Path, ...], user: tuple[int, int]) -> None:
    """Writes the union to a tar, as the workspace.

    Args:
        tar: What it is written to.
        layers: Folders, topmost first.
        user: Uid and gid that everything gets.
    """
    for name, path in _united(layers):
        entry = tar.gettarinfo(str(path), f"{WORKDIR.strip('/')}/{name}")
        entry.uid, entry.gid = user
        entry.uname = entry.gname = ""
        if entry.isreg():
            with path.open("rb") as content:
                tar.addfile(entry, content)
        elif entry.isdir() or entry.issym() or entry.islnk():
            tar.addfile(entry)


def _digest(layer: Path) -> bytes:
    facts = layer.stat()
    key = (str(layer.resolve()), facts.st_dev, facts.st_ino, facts.st_ctime_ns)
    if key not in _digests:
        total = hashlib.sha256()
        for name, path in _entries(layer):
            facts = path.lstat()
            line = f"{name}\0{facts.st_mode}\0{int(facts.st_mtime)}\0{facts.st_size}\0"
            total.update(os.fsencode(line))
            if stat.S_ISLNK(facts.st_mode):
                total.update(os.fsencode(path.readlink()))
            elif stat.S_ISREG(facts.st_mode):
                with path.open("rb") as file:
                    total.update(_digest_of_file(file))
        _digests[key] = total.digest()
    return _digests[key]


def _digest_of_file(file: IO[bytes]) -> bytes:
    return hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type] # it is a file


def _entries(layer: Path) -> Iterator[tuple[str, Path]]:
    """Yields everything in a folder by relative path, in a fixed order, folders first."""
    for folder, folders, files in os.walk(layer, onerror=_raise):
        folders.sort()
        for name in sorted((*folders, *files)):
            path = Path(folder, name)
            yield str(path.relative_to(layer)), path


def _raise(error: OSError) -> None:
    raise error


def _united(layers: tuple[Path, ...]) -> Iterator[tuple[str, Path]]:
    """Yields what the union of layers holds; what an upper one has hides that of a lower."""
    shown: dict[str, Path] = {}
    covered: set[str] = set()
    for layer in layers:
        files = set()
        for name, path in _entries(layer):
            if name in shown or any(str(parent) in covered for parent in Path(name).parents):
                continue
            shown[name] = path
            if path.is_symlink() or not path.is_dir():
                files.add(name)
        covered |= files
    yield from sorted(shown.items())
