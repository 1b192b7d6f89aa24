"""Describes folders and all in them as the records of a snapshot.

Whoever filled the folders may have nested them deeper than a path can name or a stack can follow,
so one is open at a time, and the way back is ``..``. They should be at rest meanwhile; what
changes all the same is left out or cut, and nothing outside is ever reached.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coding_gym.sandbox.zygote import records
from coding_gym.sandbox.zygote.chunks import CHUNK_BYTES, ChunkWriter
from coding_gym.sandbox.zygote.records import Record

# A snapshot leaves no trace, not even a time of access.
_QUIETLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_NOATIME", 0)
_AS_FOLDER = _QUIETLY | os.O_DIRECTORY
_AS_FILE = _QUIETLY | os.O_NONBLOCK | os.O_NOCTTY
_OVERLAY_XATTRS = tuple(f"user.overlay.{name}" for name in ("opaque", "origin", "impure", "uuid"))
_KINDS = {stat.S_IFLNK: records.SYMLINK, stat.S_IFIFO: records.FIFO, stat.S_IFSOCK: records.SOCKET}


@dataclass(slots=True)
class _Level:
    """A folder on the way down.

    Attributes:
        inode: Its number.
        mode: Its permissions before we entered.
        names: Its entries still to describe, the next one last.
    """

    inode: int
    mode: int
    names: list[str]


def pack(folders: Mapping[str, int], writer: ChunkWriter, *, newest_first: bool) -> None:
    """Writes everything in some folders.

    Args:
        folders: Names of places, and descriptors of their folders.
        writer: Takes the records.
        newest_first: How the file system lists a folder. Entries are written in the order in
            which they must be made for a listing to repeat.

    Raises:
        OSError: Something could not be read.
    """
    writer.write(records.MAGIC)
    for place, folder in folders.items():
        _Packer(writer, newest_first=newest_first).pack(place, folder)
    records.write(writer, Record(kind=records.END))
    writer.finish()


class _Packer:
    def __init__(self, writer: ChunkWriter, *, newest_first: bool) -> None:
        self._writer = writer
        self._newest_first = newest_first
        self._numbers: dict[int, int] = {}  # of inodes with several names
        self._levels: list[_Level] = []
        self._here = -1

    def pack(self, place: str, folder: int) -> None:
        facts = os.fstat(folder)
        if mode := _widened(facts.st_mode):
            os.fchmod(folder, mode)
        self._here = os.open(".", _AS_FOLDER, dir_fd=folder)
        try:
            self._enter(records.PLACE, place, facts)
            while self._levels:
                if self._levels[-1].names:
                    self._describe(self._levels[-1].names.pop())
                else:
                    self._leave()
        finally:
            os.close(self._here)

    def _describe(self, name: str) -> None:
        try:
            facts = os.stat(name, dir_fd=self._here, follow_symlinks=False)
            kind = stat.S_IFMT(facts.st_mode)
            if kind == stat.S_IFDIR:
                self._descend(name, facts)
            elif kind == stat.S_IFCHR:
                if facts.st_rdev == 0:
                    self._write(records.WHITEOUT, name, facts)
            elif not self._is_second_name(name, facts):
                if kind == stat.S_IFREG:
                    self._write_file(name, facts)
                elif kind in _KINDS:
                    self._write_special(_KINDS[kind], name, facts)
        except FileNotFoundError:  # it was removed just now
            return

    def _descend(self, name: str, facts: os.stat_result) -> None:
        if mode := _widened(facts.st_mode):
            os.chmod(name, mode, dir_fd=self._here)
        there = os.open(name, _AS_FOLDER, dir_fd=self._here)
        os.close(self._here)
        self._here = there
        self._enter(records.FOLDER, name, facts)

    def _enter(self, kind: int, name: str, facts: os.stat_result) -> None:
        self._write(kind, name, facts, xattrs=_xattrs(self._here))
        names = os.listdir(self._here)
        if not self._newest_first:
            names.reverse()
        self._levels.append(_Level(facts.st_ino, stat.S_IMODE(facts.st_mode), names))

    def _leave(self) -> None:
        left = self._levels.pop()
        records.write(self._writer, Record(kind=records.UP))
        above = os.open("..", _AS_FOLDER, dir_fd=self._here) if self._levels else -1
        if _widened(left.mode):
            os.fchmod(self._here, left.mode)
        if self._levels:
            os.close(self._here)
            self._here = above
            if os.fstat(above).st_ino != self._levels[-1].inode:
                raise OSError(errno.ESTALE, "a folder moved while it was read")

    def _is_second_name(self, name: str, facts: os.stat_result) -> bool:
        number = self._numbers.get(facts.st_ino)
        if number is None:
            if facts.st_nlink > 1:
                self._numbers[facts.st_ino] = len(self._numbers) + 1
            return False
        records.write(
            self._writer, Record(kind=records.HARD_LINK, name=os.fsencode(name), inode=number)
        )
        return True

    def _write_file(self, name: str, facts: os.stat_result) -> None:
        mode = stat.S_IMODE(facts.st_mode)
        if not mode & stat.S_IRUSR:
            os.chmod(name, mode | stat.S_IRUSR, dir_fd=self._here)
        descriptor = os.open(name, _AS_FILE, dir_fd=self._here)
        try:
            size = os.fstat(descriptor).st_size
            self._write(records.FILE, name, facts, size=size, xattrs=_xattrs(descriptor))
            self._write_data(descriptor, size)
            if not mode & stat.S_IRUSR:
                os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    def _write_data(self, descriptor: int, size: int) -> None:
        position = 0
        while position < size:
            try:
                start = os.lseek(descriptor, position, os.SEEK_DATA)
                position = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                break  # a hole to the end
            if start < position:
                records.write_extent(self._writer, start, position - start)
                self._copy(descriptor, start, position)
        records.write_extent(self._writer, size, 0)

    def _copy(self, descriptor: int, start: int, end: int) -> None:
        while start < end:
            wanted = min(end - start, CHUNK_BYTES)
            # It was cut just now where less is there.
            chunk = os.pread(descriptor, wanted, start) or bytes(wanted)
            self._writer.write(chunk)
            start += len(chunk)

    def _write_special(self, kind: int, name: str, facts: os.stat_result) -> None:
        target = b""
        if kind == records.SYMLINK:
            target = os.fsencode(os.readlink(name, dir_fd=self._here))
        self._write(kind, name, facts, size=len(target))
        self._writer.write(target)

    def _write(
        self,
        kind: int,
        name: str,
        facts: os.stat_result,
        *,
        size: int = 0,
        xattrs: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        # Reading a symlink's target sets its time of access, for which it has no use.
        read_ns = facts.st_mtime_ns if kind == records.SYMLINK else facts.st_atime_ns
        inode = self._numbers.get(facts.st_ino, 0)
        record = Record(
            kind=kind,
            name=os.fsencode(name),
            mode=stat.S_IMODE(facts.st_mode),
            inode=inode,
            num_names=facts.st_nlink if inode else 0,
            size=size,
            times_ns=(read_ns, facts.st_mtime_ns),
            xattrs=xattrs,
        )
        records.write(self._writer, record)


def _widened(mode: int) -> int:
    """Returns the permissions that let us into a folder; 0 where it has them."""
    has_them = mode & stat.S_IRWXU == stat.S_IRWXU
    return 0 if has_them else stat.S_IMODE(mode) | stat.S_IRWXU


def _xattrs(descriptor: int) -> tuple[tuple[str, bytes], ...]:
    if not hasattr(os, "listxattr"):
        return ()
    found = []
    for name in filter(records.is_kept, _xattr_names(descriptor)):
        with contextlib.suppress(OSError):  # it has no such one
            found.append((name, os.getxattr(descriptor, name)))
    return tuple(found)


def _xattr_names(descriptor: int) -> Iterable[str]:
    try:
        return os.listxattr(descriptor)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return ()
        if error.errno != errno.E2BIG:
            raise
        # A policy may set more than can be listed; those of the overlay decide what is a file.
        return _OVERLAY_XATTRS
