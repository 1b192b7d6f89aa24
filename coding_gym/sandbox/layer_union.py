"""Unites folders, the topmost first; copies files; writes a union to a tar."""

import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from coding_gym.sandbox.inside.fixed import WORKDIR

IsIncluded = Callable[["os.DirEntry[str]"], bool]

_PERMISSIONS = 0o777  # without setuid, setgid and sticky


def united(
    folders: Sequence[Path], is_included: IsIncluded = lambda _: True
) -> dict[str, "os.DirEntry[str]"]:
    """Returns the entries of the union by relative path, each folder before its content.

    An entry of an upper folder hides lower entries of the same path; folders are merged down to the
    first entry that is not a folder, as by overlayfs.

    Args:
        folders: The topmost first.
        is_included: Returns whether an entry, with its content, is part of the union.

    Raises:
        OSError: A folder cannot be read.
    """
    union: dict[str, os.DirEntry[str]] = {}
    complete_names: set[str] = set()  # lower folders of these names are hidden
    for folder in folders:
        prefixes = [""]
        for prefix in prefixes:  # the loop appends to the list
            for entry in os.scandir(f"{folder}/{prefix}"):
                name = prefix + entry.name
                if name not in union and not is_included(entry):
                    continue
                union.setdefault(name, entry)
                if not entry.is_dir(follow_symlinks=False):
                    complete_names.add(name)
                elif name not in complete_names:
                    prefixes.append(f"{name}/")
    return union


def copy(
    entries: Mapping[str, "str | os.PathLike[str]"],
    target: Path,
    owner: tuple[int, int] | None = None,
) -> None:
    """Copies files and folders; the content of a folder is copied only if ``entries`` lists it.

    Symbolic links are copied as links. Times and permissions are kept, but not setuid, setgid and
    sticky bits. Devices, pipes and sockets are skipped.

    Args:
        entries: Sources by their path in ``target``; a folder before its content.
        target: The folder of the copies.
        owner: The uid and gid of the copies; None to keep the owners.

    Raises:
        OSError: A file or folder cannot be read, or the disk is full.
    """
    copies = []
    for name, source in entries.items():
        path, info = target / name, os.lstat(source)
        if not path.parent.is_dir():
            for parent in reversed(path.parents):  # `mkdir(parents=True)` is recursive
                parent.mkdir(exist_ok=True)
        if stat.S_ISDIR(info.st_mode):
            path.mkdir(exist_ok=True)
        elif stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode):
            shutil.copyfile(source, path, follow_symlinks=False)
        else:
            continue
        copies.append((path, info))
    for path, info in reversed(copies):  # a folder after its content, which changes its time
        times_ns = info.st_atime_ns, info.st_mtime_ns
        ids = owner or (info.st_uid, info.st_gid)
        set_metadata(path, ids, info.st_mode & _PERMISSIONS, times_ns)


def set_metadata(path: Path, owner: tuple[int, int], mode: int, times_ns: tuple[int, int]) -> None:
    """Sets owner, mode (except of a symbolic link), access and modification time of one file."""
    os.chown(path, *owner, follow_symlinks=False)
    if not path.is_symlink():
        path.chmod(mode)
    os.utime(path, ns=times_ns, follow_symlinks=False)


def add_to(tar: tarfile.TarFile, layers: Sequence[Path], user: tuple[int, int]) -> None:
    """Writes the union of layers to a tar as the workspace's content, owned by ``user``.

    Raises:
        OSError: A layer cannot be read.
    """

    def set_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        entry.uid, entry.gid = user
        entry.uname = entry.gname = ""
        return None if entry.isdev() else entry

    for name, source in sorted(united(layers).items()):
        tar.add(source.path, f"{WORKDIR.strip('/')}/{name}", recursive=False, filter=set_owner)
