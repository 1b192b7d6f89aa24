"""Copies of folders, for sandboxes without an overlay."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

_KEPT_BITS = 0o777  # neither setuid nor setgid, nor sticky


def add_tree(
    source: Path,
    target: Path,
    *,
    owner: tuple[int, int] | None = None,
    is_wanted: Callable[[Path], bool] = lambda _: True,
) -> None:
    """Copies a folder into one that exists, less the files that are there already.

    Never follows a symbolic link of either. Dates are kept, and the
    permissions; devices, pipes and sockets are left out.

    Args:
        source: The folder to copy.
        target: The folder that its entries go to.
        owner: The uid and gid that the copies get; those of the originals when None.
        is_wanted: Whether an entry is copied at all.

    Raises:
        OSError: Something cannot be read, or the disk is full.
    """
    folders = [(source, target)]
    for folder, place in folders:  # grows while it is walked
        with os.scandir(folder) as entries:
            for entry in entries:
                path, copy = Path(entry.path), place / entry.name
                if not is_wanted(path):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if not os.path.lexists(copy):
                        copy.mkdir()
                    if stat.S_ISDIR(copy.lstat().st_mode):
                        folders.append((path, copy))
                elif not os.path.lexists(copy):
                    add_file(path, copy, owner=owner)
    for folder, place in reversed(folders):
        _finish(folder.stat(), place, owner)


def add_file(source: Path, target: Path, *, owner: tuple[int, int] | None = None) -> None:
    """Copies a file or a symbolic link to a free path; see `add_tree`."""
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
