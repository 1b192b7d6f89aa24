"""The union of a spec's layers: its names, its digest, and its files as a tar."""

import hashlib
import os
import tarfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO, cast

from coding_gym.errors import SandboxError
from coding_gym.sandbox.spec import WORKDIR


def names(layers: tuple[Path, ...]) -> frozenset[str]:
    """Returns the paths of the union's folders and files, relative to the workspace.

    Raises:
        SandboxError: A layer cannot be read.
    """
    return frozenset(_united(layers))


def digest(layers: tuple[Path, ...]) -> str:
    """Returns a hash of everything in the union.

    The layers are read once in the life of this process: they are never written.

    Raises:
        SandboxError, OSError: A layer cannot be read.
    """
    facts = [(layer.resolve(), layer.stat()) for layer in layers]
    return _digest(tuple((path, f.st_dev, f.st_ino, f.st_ctime_ns) for path, f in facts))


@cache
def _digest(layers: tuple[tuple[Path, int, int, int], ...]) -> str:
    total = hashlib.sha256()
    file = cast("BinaryIO", SimpleNamespace(write=total.update))
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        add_to(tar, tuple(layer for layer, *_ in layers), (0, 0))
    return total.hexdigest()


def add_to(tar: tarfile.TarFile, layers: tuple[Path, ...], user: tuple[int, int]) -> None:
    """Writes the union to a tar, as the workspace.

    Args:
        tar: The output.
        layers: Folders, topmost first.
        user: Uid and gid that everything gets.

    Raises:
        SandboxError, OSError: A layer cannot be read.
    """
    for name, path in sorted(_united(layers).items()):
        entry = tar.gettarinfo(str(path), f"{WORKDIR.strip('/')}/{name}")
        entry.uid, entry.gid = user
        entry.uname = entry.gname = ""
        if entry.isreg():
            with path.open("rb") as content:
                tar.addfile(entry, content)
        elif entry.isdir() or entry.issym() or entry.islnk():
            tar.addfile(entry)


def _united(layers: tuple[Path, ...]) -> dict[str, Path]:
    """Returns all that the union shows, by relative path; upper layers hide lower ones."""
    shown: dict[str, Path] = {}
    covered: set[str] = set()
    for layer in layers:
        files = set()
        for folder, folders, others in os.walk(layer, onerror=_raise):
            for path in (Path(folder, name) for name in (*folders, *others)):
                name = path.relative_to(layer)
                if str(name) in shown or any(str(parent) in covered for parent in name.parents):
                    continue
                shown[str(name)] = path
                if path.is_symlink() or not path.is_dir():
                    files.add(str(name))
        covered |= files
    return shown


def _raise(error: OSError) -> None:
    raise SandboxError(f"a layer cannot be read: {error}") from error
