"""Makes files below one folder from untrusted records.

Nothing can be made, changed or linked to outside: each folder is opened by its single name,
relative to the descriptor of the one above and never through a symbolic link. One folder is open at
a time and the way back is ``..``, so folders may nest deeper than a path can name or a stack can
follow. No other process may write to the folder meanwhile.
"""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_DISPLAYED_CHARS = 120
_COPIED_BYTES = 1 << 18
_NOT_LINKED = frozenset({0, stat.S_IFDIR, stat.S_IFCHR})

# Kinds of entries: the types of a tar's headers, and one of our own. The only device is 0:0, which
# everybody may make, and which an overlay takes for "nothing is here"; see fs/overlayfs of Linux.
FILE, LINK, SYMLINK, DEVICE, FOLDER, FIFO, SOCKET = b"0", b"1", b"2", b"3", b"5", b"6", b"s"
_NODES = {FIFO: stat.S_IFIFO, SOCKET: stat.S_IFSOCK, DEVICE: stat.S_IFCHR}

# The components of a path below the folder; the folder itself has none.
Parts = tuple[str, ...]


class Attributes(NamedTuple):
    """The metadata of a file or folder; the times are of the last access and the last change."""

    mode: int
    times_ns: tuple[int, int]
    xattrs: tuple[tuple[str, bytes], ...] = ()


_NO_ATTRIBUTES = Attributes(0, (0, 0))
# Of folders that exist only because something is in them: 2000-01-01.
_IMPLIED = Attributes(0o755, (946684800 * 10**9,) * 2)

# Offsets and lengths.
Extents = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Record:
    """An entry of an archive, without its data.

    Attributes:
        kind: One of the constants of this module.
        path: Its path in a snapshot, without the folders that it shares with the entry before.
        attributes: All of a file or folder; of a symbolic link the times. A hard link has none.
        num_shared: The number of the folders that it shares.
        target: Of a hard or symbolic link.
        size: Of a file, holes included.
        extents: Where a file with holes has its data; None without holes.
    """

    kind: bytes
    path: bytes = b""
    attributes: Attributes = _NO_ATTRIBUTES
    num_shared: int = 0
    target: bytes = b""
    size: int = 0
    extents: Extents | None = None

    @property
    def data(self) -> Extents:
        """Offsets and lengths of the data that follow the record."""
        return ((0, self.size),) if self.extents is None else self.extents

    @property
    def num_stored(self) -> int:
        """How many bytes of data follow the record, without the padding of their last block."""
        return self.size if self.extents is None else sum(length for _, length in self.extents)


class Placer:
    """Makes files below a folder: goes to one of its folders, and makes things there by name.

    A folder gets its attributes when it is left, so that they neither keep anything out of it nor
    change with what is made in it.

    Args:
        folder: A descriptor of the folder, empty.
        owner: The uid and gid of everything that is made; this process's own if None.
        replaces: Whether an entry takes the place of an earlier one of its name, as in a layer of
            an image; otherwise the second one is an error.

    Attributes:
        here: A descriptor of the present folder, good until the next call.
        num_implied: The number of folders that were made only because something was to be in them.
    """

    def __init__(
        self, folder: int, *, owner: tuple[int, int] | None = None, replaces: bool = False
    ) -> None:
        self._owner = None if owner == (os.geteuid(), os.getegid()) else owner
        self._replaces = replaces
        self._names: list[str] = []
        self._attributes = [_IMPLIED]
        self.num_implied = 0
        self._own(folder)
        self.here = os.open(".", FOLDER_FLAGS, dir_fd=folder)

    def finish(self) -> None:
        """Leaves all folders."""
        self._go_up(0)
        _set_attributes(self.here, self._attributes[0])

    def close(self) -> None:
        """Closes its descriptor, in whatever state the folders are."""
        os.close(self.here)

    def enter(self, parts: Sequence[str], num_shared: int = 0) -> int:
        """Goes to a folder, made if it is missing, and returns its descriptor.

        Args:
            parts: Its path, without the folders that it shares with that of the present one.
            num_shared: The number of these.

        Raises:
            ValueError: The way leads through something that is no folder.
        """
        if not 0 <= num_shared <= len(self._names):
            raise ValueError("a path that shares more than there is")
        depth = num_shared
        for name, present in zip(parts, self._names[num_shared:], strict=False):
            if name != present:
                break
            depth += 1
        self._go_up(depth)
        for name in parts[depth - num_shared :]:
            try:
                self._open(name)
            except FileNotFoundError:
                self.num_implied += 1
                self._make_and_open(name)
            except OSError as error:
                if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                    raise
                raise ValueError(
                    f"a path leads through {self._display_path(name)}, no folder"
                ) from error
        return self.here

    def make(
        self,
        parts: Sequence[str],
        record: Record,
        read: Callable[[int], bytes],
        num_shared: int = 0,
    ) -> None:
        """Makes an entry, but no hard link, and goes to its folder, or there if it is one.

        The path is as `enter` takes it; ``read`` returns at most so many bytes of a file's data.

        Raises:
            ValueError: It is of no kind that can be made there, or there is less data.
        """
        self.enter(parts[:-1], num_shared)
        if record.kind == FOLDER:
            if parts:
                self._make_folder(parts[-1])
            self._attributes[-1] = record.attributes
        elif not parts or not (record.kind in {FILE, SYMLINK} or record.kind in _NODES):
            raise ValueError(f"{display_path(parts)!r} is an entry of type {record.kind!r}")
        else:
            self._remove_old(parts[-1])
            if record.kind == FILE:
                self._make_file(parts[-1], record, read)
            else:
                self._make_name(parts[-1], record)

    def make_link(
        self, parts: Sequence[str], folder: int, target: str, num_shared: int = 0
    ) -> None:
        """Makes a second name, at a path as `enter` takes it, of ``target`` in a folder.

        Raises:
            ValueError: There is no such thing, or it can have one name only.
        """
        self.enter(parts[:-1], num_shared)
        if _kind(target, folder) in _NOT_LINKED:
            raise ValueError(f"a hard link to {target!r}, which is no file made before")
        self._remove_old(parts[-1])
        ends = {"src_dir_fd": folder, "dst_dir_fd": self.here}
        os.link(target, parts[-1], follow_symlinks=False, **ends)

    def hide(self, parts: Parts) -> None:
        """Has an overlay hide the entry of this path in lower layers.

        A folder of this name stays, and only what it would be merged with is hidden. Nothing more
        may be made afterwards.
        """
        self.enter(parts[:-1])
        kind = _kind(parts[-1], self.here)
        if kind == stat.S_IFDIR:
            self.enter(parts)
            self.mark_opaque()
        elif not kind:
            self._make_name(parts[-1], Record(DEVICE))

    def mark_opaque(self) -> None:
        """Makes an overlay's mark for "nothing of lower layers is in this folder"."""
        os.setxattr(self.here, "user.overlay.opaque", b"y")

    def _remove_old(self, name: str) -> None:
        """Removes an entry that is about to be replaced."""
        kind = self._replaces and _kind(name, self.here)
        if kind == stat.S_IFDIR:
            raise ValueError(f"{self._display_path(name)} is a folder, and then it is not")
        if kind:
            os.unlink(name, dir_fd=self.here)

    def _make_folder(self, name: str) -> None:
        if self._replaces and _kind(name, self.here) == stat.S_IFDIR:
            self._open(name)
        else:
            self._remove_old(name)
            self._make_and_open(name)

    def _make_file(self, name: str, record: Record, read: Callable[[int], bytes]) -> None:
        descriptor = os.open(name, _NEW_FILE, 0o600, dir_fd=self.here)
        try:
            self._own(descriptor)
            _write(descriptor, record, read)
            _set_attributes(descriptor, record.attributes)
        finally:
            os.close(descriptor)

    def _make_name(self, name: str, record: Record) -> None:
        """Makes a symbolic link, which nothing here follows, or a node."""
        if record.kind == SYMLINK:
            os.symlink(os.fsdecode(record.target), name, dir_fd=self.here)
        else:
            os.mknod(name, _NODES[record.kind] | 0o600, 0, dir_fd=self.here)
            os.chmod(name, record.attributes.mode, dir_fd=self.here)
        if self._owner is not None:
            os.chown(name, *self._owner, dir_fd=self.here, follow_symlinks=False)
        os.utime(name, ns=record.attributes.times_ns, dir_fd=self.here, follow_symlinks=False)

    def _make_and_open(self, name: str) -> None:
        os.mkdir(name, 0o700, dir_fd=self.here)
        self._open(name, _IMPLIED)
        self._own(self.here)

    def _open(self, name: str, attributes: Attributes | None = None) -> None:
        """Goes to a folder of the present one, which keeps its attributes if none are given."""
        there = os.open(name, FOLDER_FLAGS, dir_fd=self.here)
        os.close(self.here)
        self.here = there
        if attributes is None:
            facts = os.fstat(there)
            times_ns = facts.st_atime_ns, facts.st_mtime_ns
            attributes = Attributes(stat.S_IMODE(facts.st_mode), times_ns)
        self._names.append(name)
        self._attributes.append(attributes)

    def _go_up(self, depth: int) -> None:
        while len(self._names) > depth:
            left, self.here = self.here, os.open("..", FOLDER_FLAGS, dir_fd=self.here)
            self._names.pop()
            try:
                _set_attributes(left, self._attributes.pop())
            finally:
                os.close(left)

    def _own(self, descriptor: int) -> None:
        if self._owner is not None:
            os.fchown(descriptor, *self._owner)

    def _display_path(self, name: str) -> str:
        return repr(display_path((*self._names, name)))


def display_path(parts: Sequence[str]) -> str:
    """Returns a path for a message, of a length that is fit for one."""
    path = "/".join(parts).encode("utf-8", "replace").decode()
    return path if len(path) <= _MAX_DISPLAYED_CHARS else f"{path[:_MAX_DISPLAYED_CHARS]}…"


def _write(descriptor: int, record: Record, read: Callable[[int], bytes]) -> None:
    """Writes the data of a new file, around its holes."""
    end = 0
    for start, length in record.data:
        position, stop = start, start + length
        while position < stop:
            view = memoryview(read(min(stop - position, _COPIED_BYTES)))
            if not view:
                raise ValueError("it ends in the middle of a file")
            while view:
                count = os.pwrite(descriptor, view, position)
                view, position = view[count:], position + count
            end = position
    if end != record.size:
        os.ftruncate(descriptor, record.size)


def _set_attributes(descriptor: int, attributes: Attributes) -> None:
    """Gives a file or folder its extended attributes, permissions and times, in this order."""
    for name, value in attributes.xattrs:
        os.setxattr(descriptor, name, value)
    os.fchmod(descriptor, attributes.mode)
    os.utime(descriptor, ns=attributes.times_ns)


def _kind(name: str, folder: int) -> int:
    """Returns the file type of a name of a folder, as `stat.S_IFMT` does; 0 for nothing."""
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return 0
