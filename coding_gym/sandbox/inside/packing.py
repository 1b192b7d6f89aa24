"""The snapshot of a sandbox: a tar of the folders that hold its changes, and files made from one.

A policy may have nested folders deeper than a path can name or a stack can follow, so one is open
at a time, and the way back is ``..``. They should be at rest meanwhile; entries that change all the
same are left out or cut, and nothing outside is ever reached. The tar is not trusted.
"""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from coding_gym.sandbox.inside import scratch, wire
from coding_gym.sandbox.inside import tar_records as tar
from coding_gym.sandbox.inside.placing import (
    DEVICE,
    FIFO,
    FILE,
    FOLDER,
    FOLDER_FLAGS,
    LINK,
    SOCKET,
    SYMLINK,
    Attributes,
    Extents,
    Placer,
    Record,
)
from coding_gym.sandbox.inside.syscalls import SetupError, step
from coding_gym.sandbox.inside.wire import CHUNK_BYTES, ChunkReader, ChunkWriter

# A snapshot leaves no trace, not even a time of access.
_QUIETLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_NOATIME", 0)
_AS_FOLDER = _QUIETLY | os.O_DIRECTORY
_AS_FILE = _QUIETLY | os.O_NONBLOCK | os.O_NOCTTY
_OVERLAY_XATTRS = tuple(f"user.overlay.{name}" for name in ("opaque", "origin", "impure", "uuid"))
_KINDS = {
    stat.S_IFREG: FILE,
    stat.S_IFLNK: SYMLINK,
    stat.S_IFIFO: FIFO,
    stat.S_IFSOCK: SOCKET,
}
# `stat` counts the blocks of a file in this unit, whatever the file system.
_STAT_BLOCK_BYTES = 512
# Entries of folders with longer paths leave these out.
_MAX_PATH_BYTES = 512
# Python rewrites instructions from the eighth time on.
_NUM_WARM_UP_FILES = 12
# Added to the name of a place: holds its files of several names, all of which are links to these.
_LINKS = ".links"
_STEP = "restore the snapshot"


class Changes(NamedTuple):
    """The folders that hold a sandbox's changes, below everything that is mounted on them.

    Attributes:
        folders: Names of places, and descriptors of their folders.
        newest_first: How the file system of the sandbox lists a folder. Entries are written in the
            order in which they must be made for a listing to repeat.
    """

    folders: Mapping[str, int]
    newest_first: bool


def send(changes: Changes, channel: socket.socket) -> None:
    """Sends all changes to the owner; no process of the sandbox runs meanwhile."""
    try:
        pack(changes, wire.writer_to(channel))
    except (BrokenPipeError, ConnectionResetError):
        raise  # the owner is gone
    except OSError as error:
        channel.sendall(wire.pack({"error": f"no snapshot: {error}"}))


def pack(changes: Changes, writer: ChunkWriter) -> None:
    """Writes all changes as a tar; raises OSError where something cannot be read."""
    for place, folder in changes.folders.items():
        _Packer(writer, place, newest_first=changes.newest_first).pack(folder)
    writer.write(tar.END)
    writer.finish()


def warm_up(folder: str) -> None:
    """Packs and unpacks a few files in a new folder, and removes it; see `serving.warm_up`."""
    source, copy = f"{folder}/source", f"{folder}/copy"
    for path in (folder, source, copy):
        os.mkdir(path)
    for number in range(_NUM_WARM_UP_FILES):
        os.mkdir(f"{source}/{number}")
        os.close(os.open(f"{source}/{number}/file", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
    data: list[bytes] = []
    source_folder, copy_folder = os.open(source, _AS_FOLDER), os.open(copy, _AS_FOLDER)
    writer = ChunkWriter(lambda pieces, _: data.extend(pieces))
    pack(Changes({"place": source_folder}, newest_first=True), writer)
    unpack(ChunkReader(lambda: (b"".join(data), False)), {"place": copy_folder})
    os.close(source_folder)
    os.close(copy_folder)
    scratch.remove(folder)


class _Level(NamedTuple):
    """A folder on the way down."""

    inode: int
    mode: int  # before we entered
    path: bytes  # with a slash behind it; empty if that is too long to be repeated
    names: list[str]  # entries still to describe, the next one last


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
                self._writer.write(tar.encode(self._record(DEVICE, name, facts)))
            elif kind in _KINDS and facts.st_nlink > 1:
                self._write_link(_KINDS[kind], name, facts)
            elif kind in _KINDS:
                self._write_leaf(self._record(_KINDS[kind], name, facts), name, facts)
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
        record = self._record(FOLDER, name, facts)
        if xattrs := _xattrs(self._here):
            record.attributes = record.attributes._replace(xattrs=xattrs)
        self._writer.write(tar.encode(record))
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

    def _record(self, kind: bytes, name: str, facts: os.stat_result) -> Record:
        """Returns a record of an entry of the present folder."""
        path = self._levels[-1].path if self._levels else b""
        num_shared = 0 if path else len(self._levels)
        return Record(kind, path + os.fsencode(name), _attributes(facts), num_shared)

    def _write_link(self, kind: bytes, name: str, facts: os.stat_result) -> None:
        """Writes one of several names of a file, and the file before the first."""
        path = self._links.get(facts.st_ino)
        if path is None:
            path = os.fsencode(f"{self._place}{_LINKS}/{len(self._links) + 1}")
            self._write_leaf(Record(kind, path, _attributes(facts)), name, facts)
            self._links[facts.st_ino] = path
        record = self._record(LINK, name, facts)
        record.target = path
        self._writer.write(tar.encode(record))

    def _write_leaf(self, record: Record, name: str, facts: os.stat_result) -> None:
        """Completes and writes the record of an entry that is no folder."""
        if record.kind == FILE:
            self._write_file(record, name, facts)
            return
        if record.kind == SYMLINK:
            record.target = os.fsencode(os.readlink(name, dir_fd=self._here))
            # Reading it sets its time of access, for which it has no use.
            record.attributes = Attributes(0, (facts.st_mtime_ns,) * 2)
        self._writer.write(tar.encode(record))

    def _write_file(self, record: Record, name: str, facts: os.stat_result) -> None:
        mode = record.attributes.mode
        if not mode & stat.S_IRUSR:
            os.chmod(name, mode | stat.S_IRUSR, dir_fd=self._here)
        descriptor = os.open(name, _AS_FILE, dir_fd=self._here)
        try:
            if xattrs := _xattrs(descriptor):
                record.attributes = record.attributes._replace(xattrs=xattrs)
            record.size = facts.st_size
            if facts.st_blocks * _STAT_BLOCK_BYTES < record.size:
                record.extents = _extents(descriptor, record.size)
            self._writer.write(tar.encode(record))
            for start, length in record.data:
                self._copy(descriptor, start, start + length)
            self._writer.write(tar.padding(record.num_stored))
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


def _attributes(facts: os.stat_result) -> Attributes:
    return Attributes(stat.S_IMODE(facts.st_mode), (facts.st_atime_ns, facts.st_mtime_ns))


def _extents(descriptor: int, size: int) -> Extents:
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
    try:
        names: Iterable[str] = os.listxattr(descriptor)
    except OSError as error:
        if error.errno not in {errno.ENOTSUP, errno.E2BIG}:
            raise
        # A policy may set more than can be listed; those of the overlay decide what is a file.
        names = _OVERLAY_XATTRS if error.errno == errno.E2BIG else ()
    if not names:
        return ()
    found = []
    for name in filter(tar.is_kept, names):
        with contextlib.suppress(OSError):  # it has no such one
            found.append((name, os.getxattr(descriptor, name)))
    return tuple(found)


def restore(folders: Mapping[str, int], channel: socket.socket) -> None:
    """Fills empty folders with a snapshot that the owner sends.

    Raises:
        SetupError: It does not fit, or is no snapshot of such a sandbox.
    """
    with step(_STEP):
        try:
            unpack(wire.reader_from(channel), folders)
        except (ValueError, KeyError) as error:
            raise SetupError(_STEP, 0, f"it cannot be read: {error}") from error


def unpack(reader: ChunkReader, folders: Mapping[str, int]) -> None:
    """Fills empty folders with the files of a snapshot.

    Args:
        reader: Gives the bytes that `packing.pack` wrote.
        folders: Names of places, and descriptors of their folders.

    Raises:
        OSError: Something could not be made, as when the disk is full.
        ValueError: The bytes make no sense, or name a place that is not there.
    """
    left = dict(folders)
    record = tar.read(reader)
    while record is not None:
        place = os.fsdecode(record.path)
        if place not in left:
            raise ValueError(f"there is no place named {place[:99]!r}")
        record = _Unpacker(reader, place, left.pop(place)).unpack(record)
    if left:
        raise ValueError(f"it lacks {' and '.join(left)}")


class _Unpacker:
    """Fills the folder of one place."""

    def __init__(self, reader: ChunkReader, place: str, folder: int) -> None:
        self._reader = reader
        self._place = place
        self._folder = folder
        self._placer = Placer(folder)
        self._links: Placer | None = None
        # Not a name of the snapshot, whose names were chosen before this one was.
        self._name_of_links = os.urandom(16).hex()

    def unpack(self, place: Record) -> Record | None:
        """Makes the place itself and all that follows; returns the record of the next place."""
        try:
            self._placer.make((), place, self._reader.read)
            while (record := tar.read(self._reader)) is not None:
                names = _split(record.path)
                if record.num_shared:
                    # The shared folders begin with the place.
                    self._make(record, self._placer, names, record.num_shared - 1)
                elif len(names) > 1:
                    self._make(record, self._placer_of(names[0]), names[1:], 0)
                else:
                    break
            self._remove_links()
            self._placer.finish()
        finally:
            self._placer.close()
            if self._links is not None:
                self._links.close()
        return record

    def _placer_of(self, top: str) -> Placer:
        """Returns the placer for the entries of a folder at the top of the tar."""
        if top == self._place:
            return self._placer
        if top != self._place + _LINKS:
            raise ValueError("an entry outside every place")
        if self._links is None:
            os.mkdir(self._name_of_links, 0o700, dir_fd=self._folder)
            descriptor = os.open(self._name_of_links, FOLDER_FLAGS, dir_fd=self._folder)
            try:
                self._links = Placer(descriptor)
            finally:
                os.close(descriptor)
        return self._links

    def _remove_links(self) -> None:
        if self._links is not None:
            folder = self._links.enter(())
            for name in os.listdir(folder):
                os.unlink(name, dir_fd=folder)
            os.rmdir(self._name_of_links, dir_fd=self._folder)

    def _make(self, record: Record, placer: Placer, names: Sequence[str], num_shared: int) -> None:
        if record.kind == LINK:
            top, *target = _split(record.target)
            if top != self._place + _LINKS or len(target) != 1:
                raise ValueError(f"a hard link to {record.target[:99]!r}, which is not for links")
            placer.make_link(names, self._placer_of(top).enter(()), target[0], num_shared)
            return
        placer.make(names, record, self._reader.read, num_shared)
        if record.kind == FILE:
            self._reader.read(len(tar.padding(record.num_stored)))


def _split(path: bytes) -> list[str]:
    """Returns the components of a path; raises ValueError where one is no name."""
    names = os.fsdecode(path).split("/")
    if not {"", ".", ".."}.isdisjoint(names):
        raise ValueError(f"an entry named {path[:99]!r}")
    return names
