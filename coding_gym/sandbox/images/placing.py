"""Makes files below one folder, whatever their names and each other's say.

Everything goes through descriptors of folders that were opened one by one and never through a
symbolic link, so that nothing can be made, changed or linked to outside.
"""

import contextlib
import errno
import os
import stat
from typing import Self

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.images.new_file import NewFile, nanoseconds

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_SHOWN_CHARS = 120
# Of folders that are there only because something is in them: 2000-01-01.
_IMPLIED_MTIME = 946684800.0

Parts = tuple[str, ...]


class Placer:
    """Makes files below a folder.

    What root could read and write, one user must be able to: the owner of folders gets all
    permissions, that of files may read and write. Set-user-id and set-group-id bits are dropped.

    Args:
        folder: The folder, empty.
        owner: The uid and gid that everything gets.

    Attributes:
        num_implied: How many folders were made only because something was to be in them.
    """

    def __init__(self, folder: str, owner: tuple[int, int]) -> None:
        self._root = os.open(folder, _FOLDER)
        self._owner = owner
        self._mine = owner == (os.geteuid(), os.getegid())
        self._last: tuple[Parts, int] = ((), self._root)
        self.num_implied = 0
        # By inode: as many paths, of a hostile length, would fill the memory.
        self._times = {os.fstat(self._root).st_ino: _IMPLIED_MTIME}
        os.fchmod(self._root, 0o755)
        self._own(self._root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._remember((), self._root)
        os.close(self._root)

    def make_folder(self, parts: Parts, mode: int, mtime: float) -> int:
        """Makes a folder, or gives one that is there other permissions; returns its descriptor.

        The descriptor is good until the next call.
        """
        if self.kind(parts) != stat.S_IFDIR:
            self._make_room(parts)
        here = self._enter(parts)
        os.fchmod(here, mode & 0o1777 | 0o700)
        self._times[os.fstat(here).st_ino] = mtime
        return here

    def make_file(self, parts: Parts, mode: int, mtime: float) -> NewFile:
        """Makes an empty file in place of what is there."""
        self._make_room(parts)
        descriptor = os.open(parts[-1], _NEW_FILE, 0o600, dir_fd=self._enter(parts[:-1]))
        self._own(descriptor)
        return NewFile(descriptor, mode & 0o777 | 0o600, mtime)

    def make_symlink(self, parts: Parts, target: str, mtime: float) -> None:
        """Makes a symbolic link, which nothing here will follow."""
        self._make_room(parts)
        parent, name = self._enter(parts[:-1]), parts[-1]
        os.symlink(target, name, dir_fd=parent)
        if not self._mine:
            os.chown(name, *self._owner, dir_fd=parent, follow_symlinks=False)
        os.utime(name, ns=nanoseconds(mtime), dir_fd=parent, follow_symlinks=False)

    def make_link(self, parts: Parts, target: Parts) -> None:
        """Makes a second name of a file or symbolic link that was made before.

        Raises:
            InvalidArgumentError: There is no such file.
        """
        if parts == target:
            return
        kind = self.kind(target)
        if kind not in {stat.S_IFREG, stat.S_IFLNK}:
            raise InvalidArgumentError(
                f"{shown(parts)!r} is a hard link to {shown(target)!r}, which is no file "
                "of the layer"
            )
        self._make_room(parts)
        source = os.dup(self._enter(target[:-1]))
        try:
            os.link(
                target[-1],
                parts[-1],
                src_dir_fd=source,
                dst_dir_fd=self._enter(parts[:-1]),
                follow_symlinks=False,
            )
        finally:
            os.close(source)

    def make_node(self, parts: Parts) -> None:
        """Makes an overlay's mark for "nothing is here"; see linux/fs/overlayfs."""
        os.mknod(parts[-1], stat.S_IFCHR, os.makedev(0, 0), dir_fd=self._enter(parts[:-1]))
        if not self._mine:
            os.chown(parts[-1], *self._owner, dir_fd=self._enter(parts[:-1]), follow_symlinks=False)

    def make_opaque(self, parts: Parts) -> None:
        """Makes an overlay's mark for "nothing of lower layers is in this folder"."""
        os.setxattr(self._enter(parts), "user.overlay.opaque", b"y")

    def kind(self, parts: Parts) -> int:
        """Returns what is at a path, as `stat.S_IFMT` does; 0 for nothing."""
        if not parts:
            return stat.S_IFDIR
        with contextlib.suppress(FileNotFoundError):
            parent = self._enter(parts[:-1], make=False)
            facts = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
            return stat.S_IFMT(facts.st_mode)
        return 0

    def settle(self) -> None:
        """Gives folders their times, which what was made in them had changed."""
        for _, _, _, here in os.fwalk(topdown=False, dir_fd=self._root):
            os.utime(here, ns=nanoseconds(self._times[os.fstat(here).st_ino]))

    def _make_room(self, parts: Parts) -> None:
        """Removes the file of that name: the last entry of a name counts.

        Raises:
            InvalidArgumentError: It is a folder, which may hold files already.
        """
        kind = self.kind(parts)
        if kind == stat.S_IFDIR:
            raise InvalidArgumentError(f"{shown(parts)!r} is a folder, and then it is not")
        if kind:
            os.unlink(parts[-1], dir_fd=self._enter(parts[:-1]))

    def _enter(self, parts: Parts, *, make: bool = True) -> int:
        """Returns a descriptor of a folder, good until the next call."""
        if parts[: len(self._last[0])] != self._last[0]:
            self._remember((), self._root)
        for name in parts[len(self._last[0]) :]:
            above, here = self._last
            self._remember((*above, name), self._step(here, (*above, name), make=make))
        return self._last[1]

    def _step(self, here: int, parts: Parts, *, make: bool) -> int:
        for is_new in (False, True):
            try:
                descriptor = os.open(parts[-1], _FOLDER, dir_fd=here)
            except FileNotFoundError:
                if not make or is_new:
                    raise
                os.mkdir(parts[-1], 0o755, dir_fd=here)
                continue
            except OSError as error:
                if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                    raise
                raise InvalidArgumentError(
                    f"a path leads through {shown(parts)!r}, which is no folder"
                ) from error
            if is_new:
                os.fchmod(descriptor, 0o755)
                self._own(descriptor)
                self._times[os.fstat(descriptor).st_ino] = _IMPLIED_MTIME
                self.num_implied += 1
            return descriptor
        raise AssertionError("unreachable")

    def _remember(self, parts: Parts, descriptor: int) -> None:
        if self._last[1] != self._root:
            os.close(self._last[1])
        self._last = (parts, descriptor)

    def _own(self, descriptor: int) -> None:
        if not self._mine:
            os.fchown(descriptor, *self._owner)


def shown(parts: Parts) -> str:
    """Returns a path for a message, of a length that is fit for one."""
    path = "/".join(parts).encode("utf-8", "replace").decode()
    return path if len(path) <= _SHOWN_CHARS else f"{path[:_SHOWN_CHARS]}…"
