"""The union of a spec's layers: its names, its digest, and its files as a tar."""

import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from coding_gym.errors import SandboxError
from coding_gym.sandbox.spec import WORKDIR


def names(layers: tuple[Path, ...]) -> frozenset[str]:
    """Returns the paths of the union's folders and files, relative to the workspace.

    Raises:
        SandboxError: A layer cannot be read.
    """
    try:
        return frozenset(name for name, _ in _united(layers))
    except OSError as error:
        raise SandboxError(f"a layer cannot be read: {error}") from error


def digest(layers: tuple[Path, ...]) -> str:
    """Returns a hash of everything in the union.

    The layers are read once in the life of this process: they are never written.

    Raises:
        OSError: A layer cannot be read.
    """
    facts = [(layer.resolve(), layer.stat()) for layer in layers]
    return _digest(tuple((path, f.st_dev, f.st_ino, f.st_ctime_ns) for path, f in facts))


@cache
def _digest(layers: tuple[tuple[Path, int, int, int], ...]) -> str:
    total = hashlib.sha256()
    for name, path in _united(tuple(layer for layer, *_ in layers)):
        facts = path.lstat()
        line = f"{name}\0{facts.st_mode}\0{int(facts.st_mtime)}\0{facts.st_size}\0"
        total.update(os.fsencode(line))
        if stat.S_ISLNK(facts.st_mode):
            total.update(os.fsencode(path.readlink()))
        elif stat.S_ISREG(facts.st_mode):
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def add_to(tar: tarfile.TarFile, layers: tuple[Path, ...], user: tuple[int, int]) -> None:
    """Writes the union to a tar, as the workspace.

    Args:
        tar: What it is written to.
        layers: Folders, topmost first.
        user: Uid and gid that everything gets.

    Raises:
        OSError: A layer cannot be read.
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


def _united(layers: tuple[Path, ...]) -> list[tuple[str, Path]]:
    """Returns relative and real path of all that the union shows, sorted; upper layers hide."""
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
    return sorted(shown.items())


def _entries(layer: Path) -> Iterator[tuple[str, Path]]:
    """Yields everything in a folder by relative path, folders before what they hold."""
    for folder, folders, files in os.walk(layer, onerror=_raise):
        for name in (*folders, *files):
            path = Path(folder, name)
            yield str(path.relative_to(layer)), path


def _raise(error: OSError) -> None:
    raise error
