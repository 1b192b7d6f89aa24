"""The union of folders, the topmost first: its names, its files as a copy or a tar."""

import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

from coding_gym.errors import SandboxError
from coding_gym.sandbox.spec import WORKDIR

_KEPT_BITS = 0o777  # neither setuid nor setgid, nor sticky


def united(
    folders: Sequence[Path], is_wanted: Callable[[Path], bool] = lambda _: True
) -> dict[str, "os.DirEntry[str]"]:
    """Returns what the union shows by relative path, folders before what is in them.

    Upper folders hide what lower ones have at the same path, unless both have a folder there.

    Args:
        folders: The topmost first.
        is_wanted: Whether an entry is part of it, with all that is in it.

    Raises:
        SandboxError: One of them cannot be read.
    """
    visible: dict[str, os.DirEntry[str]] = {}
    for folder in folders:
        prefixes = [""]
        for prefix in prefixes:  # grows while it is walked
            try:
                entries = list(os.scandir(folder / prefix))
            except OSError as error:
                raise SandboxError(f"a layer cannot be read: {error}") from error
            for entry in entries:
                name = prefix + entry.name
                if name not in visible and not is_wanted(Path(entry.path)):
                    continue
                first = visible.setdefault(name, entry)
                if all(one.is_dir(follow_symlinks=False) for one in (first, entry)):
                    prefixes.append(f"{name}/")
    return visible


def copy(
    folders: Sequence[Path],
    target: Path,
    *,
    owner: tuple[int, int] | None = None,
    is_wanted: Callable[[Path], bool] = lambda _: True,
) -> None:
    """Copies a union into an empty folder.

    Never follows a symbolic link. Dates are kept, and the permissions; devices, pipes and sockets
    are left out.

    Args:
        folders: The topmost first.
        target: The folder that the entries go to.
        owner: The uid and gid that the copies get; those of the originals when None.
        is_wanted: As that of `united`.

    Raises:
        OSError: A file cannot be read, or the disk is full.
        SandboxError: A folder cannot be read.
    """
    made = [(folder, target) for folder in folders[:1]]
    for name, entry in united(folders, is_wanted).items():
        if entry.is_dir(follow_symlinks=False):
            (target / name).mkdir()
            made.append((Path(entry.path), target / name))
        else:
            copy_file(Path(entry.path), target / name, owner=owner)
    for folder, place in reversed(made):
        _finish(folder.stat(), place, owner)


def copy_file(source: Path, target: Path, *, owner: tuple[int, int] | None = None) -> None:
    """Copies a file or a symbolic link to a free path; see `copy`."""
    facts = source.lstat()
    if stat.S_ISLNK(facts.st_mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISREG(facts.st_mode):
        shutil.copyfile(source, target)
    else:
        return
    _finish(facts, target, owner)


def _finish(facts: os.stat_result, target: Path, owner: tuple[int, int] | None) -> None:
    """Gives a copy the owner, the mode and the date that it should have."""
    uid, gid = owner or (facts.st_uid, facts.st_gid)
    os.chown(target, uid, gid, follow_symlinks=False)
    if not stat.S_ISLNK(target.lstat().st_mode):
        target.chmod(facts.st_mode & _KEPT_BITS)
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns), follow_symlinks=False)


def add_to(tar: tarfile.TarFile, layers: Sequence[Path], user: tuple[int, int]) -> None:
    """Writes the union to a tar, as the workspace, in which everything is of one uid and gid.

    Raises:
        SandboxError, OSError: A layer cannot be read.
    """
    for name, source in sorted(united(layers).items()):
        entry = tar.gettarinfo(source.path, f"{WORKDIR.strip('/')}/{name}")
        entry.uid, entry.gid = user
        entry.uname = entry.gname = ""
        if entry.isreg():
            with Path(source.path).open("rb") as content:
                tar.addfile(entry, content)
        elif entry.isdir() or entry.issym() or entry.islnk():
            tar.addfile(entry)
