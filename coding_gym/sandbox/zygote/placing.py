"""Makes files below one folder from records that nobody vouches for.

Nothing can be made, changed or linked to outside: each folder is opened by its single name,
relative to the descriptor of the one above and never through a symbolic link. One folder is open at
a time and the way back is ``..``, so folders may nest deeper than a path can name or a stack can
follow. Nobody else may write to the folder meanwhile.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SHOWN_CHARS = 120
_LINKED_NEVER = frozenset({0, stat.S_IFDIR, stat.S_IFCHR})

# The components of a path below the folder; the folder itself has none.
Parts = tuple[str, ...]
_Made = TypeVar("_Made")


@dataclass(slots=True)
class Attributes:
    """What a file or folder has besides its content.

    Attributes:
        mode: Permissions.
        times_ns: When it was last read and changed.
        xattrs: Extended attributes.
    """

    mode: int
    times_ns: tuple[int, int]
    xattrs: tuple[tuple[str, bytes], ...] = ()


# Of folders that exist only because something is in them: 2000-01-01.
_IMPLIED = Attributes(0o755, (946684800 * 10**9,) * 2)


class Placer:
    """Makes files below a folder.

    A folder gets its attributes when it is left, so that they neither keep anything out of it nor
    change with what is made in it.

    Args:
        folder: A descriptor of the folder, empty.
        owner: The uid and gid that everything gets; this process's own if None.
        replaces: Whether an entry takes the place of an earlier one of its name, as in a layer of
            an image; otherwise the second one is an error.

    Attributes:
        num_implied: How many folders were made only because something was to be in them.
    """

    def __init__(
        self, folder: int, *, owner: tuple[int, int] | None = None, replaces: bool = False
    ) -> None:
        self._owner = None if owner == (os.geteuid(), os.getegid()) else owner
        self._replaces = replaces
        self._parts: Parts = ()
        self._attributes = [_IMPLIED]
        self._link_parts: Parts | None = None  # the folder of the last hard link's target
        self._link_folder = -1
        self.num_implied = 0
        self._here = os.open(".", FOLDER_FLAGS, dir_fd=folder)
        self._own(self._here)

    def finish(self) -> None:
        """Leaves all folders, and so gives them their attributes."""
        self._go_up(())
        set_attributes(self._here, self._attributes[0])

    def close(self) -> None:
        """Closes its descriptors, in whatever state the folders are."""
        os.close(self._here)
        if self._link_folder >= 0:
            os.close(self._link_folder)

    def enter(self, parts: Parts, *, makes: bool = True) -> int:
        """Goes to a folder and returns its descriptor, good until the next call.

        Args:
            parts: Its path.
            makes: Whether to make folders that are missing.

        Raises:
            ValueError: The way leads through something that is no folder.
            FileNotFoundError: It is missing, and must not be made.
        """
        if parts != self._parts:
            self._go_up(parts)
            for name in parts[len(self._parts) :]:
                self._step(name, makes=makes)
        return self._here

    def kind(self, parts: Parts) -> int:
        """Returns what is at a path, as `stat.S_IFMT` does; 0 for nothing."""
        if not parts:
            return stat.S_IFDIR
        with contextlib.suppress(FileNotFoundError):
            return _kind(parts[-1], self.enter(parts[:-1], makes=False))
        return 0

    def make_folder(self, parts: Parts, attributes: Attributes) -> int:
        """Makes a folder and returns its descriptor, good until the next call."""
        self.enter(parts[:-1])
        if parts:
            kind = _kind(parts[-1], self._here) if self._replaces else 0
            if kind == stat.S_IFDIR:
                self._open(parts[-1], attributes)
            else:
                self._make_and_open(parts[-1], kind, attributes)
        self._attributes[-1] = attributes
        return self._here

    def make_file(self, parts: Parts) -> int:
        """Makes an empty file and returns a descriptor to write to, for the caller to close."""
        descriptor = self._make(
            parts, lambda name, folder: os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
        )
        self._own(descriptor)
        return descriptor

    def make_symlink(self, parts: Parts, target: str, times_ns: tuple[int, int]) -> None:
        """Makes a symbolic link, which nothing here follows."""
        self._make(parts, lambda name, folder: os.symlink(target, name, dir_fd=folder))
        self._finish_name(parts[-1], times_ns)

    def make_node(self, parts: Parts, kind: int, attributes: Attributes) -> None:
        """Makes a FIFO, a socket, or the character device 0:0, which everybody may make.

        An overlay takes the device for "nothing is here"; see fs/overlayfs of Linux.
        """
        self._make(parts, lambda name, folder: os.mknod(name, kind | 0o600, 0, dir_fd=folder))
        os.chmod(parts[-1], attributes.mode, dir_fd=self._here)
        self._finish_name(parts[-1], attributes.times_ns)

    def make_link(self, parts: Parts, target: Parts) -> None:
        """Makes a second name of something that was made before.

        Raises:
            ValueError: There is no such thing, or it can have one name only.
        """
        if parts == target:
            return
        source = self._open_for_links(target[:-1])
        if _kind(target[-1], source) in _LINKED_NEVER:
            raise ValueError(f"a hard link to {shown(target)!r}, which is no file made before")

        def make(name: str, folder: int) -> None:
            ends = {"src_dir_fd": source, "dst_dir_fd": folder}
            os.link(target[-1], name, follow_symlinks=False, **ends)

        self._make(parts, make)

    def mark_opaque(self, parts: Parts) -> None:
        """Makes an overlay's mark for "nothing of lower layers is in this folder"."""
        os.setxattr(self.enter(parts), "user.overlay.opaque", b"y")

    def remove_folder(self, parts: Parts) -> None:
        """Removes a folder that holds no other one."""
        folder = self.enter(parts)
        for name in os.listdir(folder):
            os.unlink(name, dir_fd=folder)
        os.rmdir(parts[-1], dir_fd=self.enter(parts[:-1]))

    def _make(self, parts: Parts, make: Callable[[str, int], _Made]) -> _Made:
        """Has something made, by its name and the descriptor of its folder."""
        folder = self.enter(parts[:-1])
        try:
            return make(parts[-1], folder)
        except FileExistsError:
            if not self._replaces:
                raise
        if _kind(parts[-1], folder) == stat.S_IFDIR:
            raise ValueError(f"{shown(parts)!r} is a folder, and then it is not")
        os.unlink(parts[-1], dir_fd=folder)
        return make(parts[-1], folder)

    def _open_for_links(self, parts: Parts) -> int:
        """Returns a descriptor of a folder that stays open until another is asked for."""
        if parts != self._link_parts:
            try:
                folder = os.dup(self.enter(parts, makes=False))
            except FileNotFoundError as error:
                raise ValueError(f"a hard link to a file in {shown(parts)!r}: {error}") from error
            if self._link_folder >= 0:
                os.close(self._link_folder)
            self._link_parts, self._link_folder = parts, folder
        return self._link_folder

    def _finish_name(self, name: str, times_ns: tuple[int, int]) -> None:
        if self._owner is not None:
            os.chown(name, *self._owner, dir_fd=self._here, follow_symlinks=False)
        os.utime(name, ns=times_ns, dir_fd=self._here, follow_symlinks=False)

    def _step(self, name: str, *, makes: bool) -> None:
        """Goes to a folder of the present one."""
        try:
            self._open(name)
            return
        except FileNotFoundError:
            kind = 0
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            kind = _kind(name, self._here)
            if kind != stat.S_IFCHR or not self._replaces:
                way = shown((*self._parts, name))
                raise ValueError(f"a path leads through {way!r}, which is no folder") from error
        if not makes:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        self.num_implied += 1
        self._make_and_open(name, kind, _IMPLIED)

    def _make_and_open(self, name: str, kind: int, attributes: Attributes) -> None:
        """Makes a folder in place of something of this kind, 0 for nothing, and goes there."""
        if kind:
            os.unlink(name, dir_fd=self._here)
        os.mkdir(name, 0o700, dir_fd=self._here)
        self._open(name, attributes)
        self._own(self._here)
        if kind == stat.S_IFCHR:  # what is below was removed
            self.mark_opaque(self._parts)

    def _open(self, name: str, attributes: Attributes | None = None) -> None:
        """Goes to a folder of the present one, which keeps its attributes if none are given."""
        there = os.open(name, FOLDER_FLAGS, dir_fd=self._here)
        os.close(self._here)
        self._here = there
        self._parts = (*self._parts, name)
        if attributes is None:
            facts = os.fstat(there)
            mode = stat.S_IMODE(facts.st_mode)
            attributes = Attributes(mode, (facts.st_atime_ns, facts.st_mtime_ns))
        self._attributes.append(attributes)

    def _go_up(self, parts: Parts) -> None:
        """Leaves folders until it is in one that the path leads through."""
        while self._parts != parts[: len(self._parts)]:
            left, self._here = self._here, os.open("..", FOLDER_FLAGS, dir_fd=self._here)
            self._parts = self._parts[:-1]
            try:
                set_attributes(left, self._attributes.pop())
            finally:
                os.close(left)

    def _own(self, descriptor: int) -> None:
        if self._owner is not None:
            os.fchown(descriptor, *self._owner)


def write_at(descriptor: int, data: bytes | memoryview, offset: int) -> None:
    """Writes all of some data at a place of a file; places that are never written are holes."""
    view = memoryview(data)
    while view:
        count = os.pwrite(descriptor, view, offset)
        view, offset = view[count:], offset + count


def set_attributes(descriptor: int, attributes: Attributes) -> None:
    """Gives a file or folder its extended attributes, permissions and times, in this order."""
    for name, value in attributes.xattrs:
        os.setxattr(descriptor, name, value)
    os.fchmod(descriptor, attributes.mode)
    os.utime(descriptor, ns=attributes.times_ns)


def shown(parts: Parts) -> str:
    """Returns a path for a message, of a length that is fit for one."""
    path = "/".join(parts).encode("utf-8", "replace").decode()
    return path if len(path) <= _SHOWN_CHARS else f"{path[:_SHOWN_CHARS]}…"


def _kind(name: str, folder: int) -> int:
    """Returns what a name of a folder is, as `stat.S_IFMT` does; 0 for nothing."""
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return 0
