"""Writes folders and all in them as a tar.

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

from coding_gym.sandbox.zygote import scratch, tar_records
from coding_gym.sandbox.zygote.chunks import CHUNK_BYTES, ChunkReader, ChunkWriter
from coding_gym.sandbox.zygote.placing import Attributes
from coding_gym.sandbox.zygote.tar_records import Record
from coding_gym.sandbox.zygote.unpacking import LINKS, unpack

# A snapshot leaves no trace, not even a time of access.
_QUIETLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_NOATIME", 0)
_AS_FOLDER = _QUIETLY | os.O_DIRECTORY
_AS_FILE = _QUIETLY | os.O_NONBLOCK | os.O_NOCTTY
_OVERLAY_XATTRS = tuple(f"user.overlay.{name}" for name in ("opaque", "origin", "impure", "uuid"))
_KINDS = {
    stat.S_IFREG: tar_records.FILE,
    stat.S_IFLNK: tar_records.SYMLINK,
    stat.S_IFIFO: tar_records.FIFO,
    stat.S_IFSOCK: tar_records.SOCKET,
}
# Entries of folders with longer paths leave these out.
_MAX_PATH_BYTES = 512
# Python rewrites instructions from the eighth time on.
_NUM_WARM_UP_FILES = 12


@dataclass(slots=True)
class _Level:
    """A folder on the way down.

    Attributes:
        inode: Its number.
        mode: Its permissions before we entered.
        path: Its path with a slash behind it; empty if that is too long to be repeated.
        names: Its entries still to describe, the next one last.
    """

    inode: int
    mode: int
    path: bytes
    names: list[str]


def pack(folders: Mapping[str, int], writer: ChunkWriter, *, newest_first: bool) -> None:
    """Writes everything in some folders.

    Args:
        folders: Names of places, and descriptors of their folders.
        writer: Takes the tar.
        newest_first: How the file system lists a folder. Entries are written in the order in
            which they must be made for a listing to repeat.

    Raises:
        OSError: Something could not be read.
    """
    for place, folder in folders.items():
        _Packer(writer, place, newest_first=newest_first).pack(folder)
    writer.write(tar_records.END)
    writer.finish()


def warm_up(folder: str) -> None:
    """Packs and unpacks a few files in a new folder, and removes it; see `rehearsal`."""
    source, copy = f"{folder}/source", f"{folder}/copy"
    for path in (folder, source, copy):
        os.mkdir(path)
    for number in range(_NUM_WARM_UP_FILES):
        os.mkdir(f"{source}/{number}")
        os.close(os.open(f"{source}/{number}/file", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
    data: list[bytes] = []
    source_folder, copy_folder = os.open(source, _AS_FOLDER), os.open(copy, _AS_FOLDER)
    writer = ChunkWriter(lambda chunk, _: data.append(chunk))
    pack({"place": source_folder}, writer, newest_first=True)
    unpack(ChunkReader(lambda: (b"".join(data), False)), {"place": copy_folder})
    os.close(source_folder)
    os.close(copy_folder)
    scratch.remove(folder)


class _Packer:
    """Writes the folder of one place."""

    def __init__(self, writer: ChunkWriter, place: str, *, newest_first: bool) -> None:
        self._writer = writer
        self._place = place
        self._newest_first = newest_first
        self._links: dict[int, bytes] = {}  # paths of files with several names, by inode
        self._levels: list[_Level] = []
        self._here = -1

    def pack(self, folder: int) -> None:
        facts = os.fstat(folder)
        if mode := _widened(facts.st_mode):
            os.fchmod(folder, mode)
        self._here = os.open(".", _AS_FOLDER, dir_fd=folder)
        try:
            self._enter(self._place, facts)
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
            elif kind == stat.S_IFCHR and facts.st_rdev == 0:  # an overlay's mark for a removal
                self._write_leaf(self._record(tar_records.DEVICE, name), name, facts)
            elif kind in _KINDS and facts.st_nlink > 1:
                self._write_link(_KINDS[kind], name, facts)
            elif kind in _KINDS:
                self._write_leaf(self._record(_KINDS[kind], name), name, facts)
        except FileNotFoundError:  # it was removed just now
            return

    def _descend(self, name: str, facts: os.stat_result) -> None:
        if mode := _widened(facts.st_mode):
            os.chmod(name, mode, dir_fd=self._here)
        there = os.open(name, _AS_FOLDER, dir_fd=self._here)
        os.close(self._here)
        self._here = there
        self._enter(name, facts)

    def _enter(self, name: str, facts: os.stat_result) -> None:
        record = self._record(tar_records.FOLDER, name)
        record.attributes = _attributes(facts, _xattrs(self._here))
        self._write(record)
        names = os.listdir(self._here)
        if not self._newest_first:
            names.reverse()
        is_short = not record.num_shared and len(record.path) < _MAX_PATH_BYTES
        path = record.path + b"/" if is_short else b""
        self._levels.append(_Level(facts.st_ino, stat.S_IMODE(facts.st_mode), path, names))

    def _leave(self) -> None:
        left = self._levels.pop()
        above = os.open("..", _AS_FOLDER, dir_fd=self._here) if self._levels else -1
        if _widened(left.mode):
            os.fchmod(self._here, left.mode)
        if self._levels:
            os.close(self._here)
            self._here = above
            if os.fstat(above).st_ino != self._levels[-1].inode:
                raise OSError(errno.ESTALE, "a folder moved while it was read")

    def _record(self, kind: bytes, name: str) -> Record:
        """Returns a record of an entry of the present folder."""
        path = self._levels[-1].path if self._levels else b""
        return Record(kind, path + os.fsencode(name), 0 if path else len(self._levels))

    def _write_link(self, kind: bytes, name: str, facts: os.stat_result) -> None:
        """Writes one of several names of a file, and the file before the first."""
        path = self._links.get(facts.st_ino)
        if path is None:
            path = os.fsencode(f"{self._place}{LINKS}/{len(self._links) + 1}")
            self._write_leaf(Record(kind, path), name, facts)
            self._links[facts.st_ino] = path
        record = self._record(tar_records.LINK, name)
        record.target = path
        self._write(record)

    def _write_leaf(self, record: Record, name: str, facts: os.stat_result) -> None:
        """Completes and writes the record of what is no folder."""
        record.attributes = _attributes(facts)
        if record.kind == tar_records.FILE:
            self._write_file(record, name)
            return
        if record.kind == tar_records.SYMLINK:
            record.target = os.fsencode(os.readlink(name, dir_fd=self._here))
            # Reading it sets its time of access, for which it has no use.
            record.attributes.times_ns = (facts.st_mtime_ns,) * 2
        self._write(record)

    def _write_file(self, record: Record, name: str) -> None:
        mode = record.attributes.mode
        if not mode & stat.S_IRUSR:
            os.chmod(name, mode | stat.S_IRUSR, dir_fd=self._here)
        descriptor = os.open(name, _AS_FILE, dir_fd=self._here)
        try:
            record.attributes.xattrs = _xattrs(descriptor)
            record.size = os.fstat(descriptor).st_size
            record.extents = _extents(descriptor, record.size)
            self._write(record)
            for start, length in record.extents:
                self._copy(descriptor, start, start + length)
            self._writer.write(tar_records.padding(tar_records.num_stored(record)))
            if not mode & stat.S_IRUSR:
                os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    def _copy(self, descriptor: int, start: int, end: int) -> None:
        while start < end:
            wanted = min(end - start, CHUNK_BYTES)
            # It was cut just now where less is there.
            chunk = os.pread(descriptor, wanted, start) or bytes(wanted)
            self._writer.write(chunk)
            start += len(chunk)

    def _write(self, record: Record) -> None:
        self._writer.write(tar_records.encode(record))


def _attributes(facts: os.stat_result, xattrs: tuple[tuple[str, bytes], ...] = ()) -> Attributes:
    times_ns = facts.st_atime_ns, facts.st_mtime_ns
    return Attributes(stat.S_IMODE(facts.st_mode), times_ns, xattrs)


def _extents(descriptor: int, size: int) -> tuple[tuple[int, int], ...]:
    """Returns the offsets and lengths of a file's data; none of any length for holes alone."""
    found = []
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
            found.append((start, position - start))
    return tuple(found) or ((size, 0),)


def _widened(mode: int) -> int:
    """Returns the permissions that let us into a folder; 0 where it has them."""
    has_them = mode & stat.S_IRWXU == stat.S_IRWXU
    return 0 if has_them else stat.S_IMODE(mode) | stat.S_IRWXU


def _xattrs(descriptor: int) -> tuple[tuple[str, bytes], ...]:
    if not hasattr(os, "listxattr"):
        return ()
    found = []
    for name in filter(tar_records.is_kept, _xattr_names(descriptor)):
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
