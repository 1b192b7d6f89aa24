"""Makes files again from the records of a snapshot.

Nothing in a record can lead outside the given folders: names are single ones, everything is made
anew relative to the descriptor of its folder, and what exists already is an error. One folder is
open at a time. The folders must be nobody else's meanwhile.
"""

import os
import stat
from collections.abc import Mapping

from coding_gym.sandbox.zygote import records
from coding_gym.sandbox.zygote.chunks import ChunkReader
from coding_gym.sandbox.zygote.records import Record

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DEVICES = {
    records.FIFO: stat.S_IFIFO,
    records.SOCKET: stat.S_IFSOCK,
    # Character device 0:0, the one that everybody may make.
    records.WHITEOUT: stat.S_IFCHR,
}


def unpack(reader: ChunkReader, folders: Mapping[str, int]) -> None:
    """Fills empty folders with what a snapshot holds.

    Args:
        reader: Gives the records.
        folders: Names of places, and descriptors of their folders.

    Raises:
        OSError: Something could not be made, as when the disk is full.
        ValueError: The records make no sense, or name a place that is not there.
    """
    if reader.read(len(records.MAGIC)) != records.MAGIC:
        raise ValueError("not a snapshot of this version")
    left = dict(folders)
    while (record := records.read(reader)).kind == records.PLACE:
        folder = left.pop(record.name.decode("utf-8", "replace"), None)
        if folder is None:
            raise ValueError(f"there is no place named {record.name!r}")
        _Unpacker(reader, folder, record).unpack()
    if record.kind != records.END:
        raise ValueError("an entry outside every place")
    if left:
        raise ValueError(f"it lacks {' and '.join(left)}")
    reader.finish()


class _Unpacker:
    def __init__(self, reader: ChunkReader, folder: int, place: Record) -> None:
        self._reader = reader
        self._way = [place]
        self._here = os.open(".", _FOLDER, dir_fd=folder)
        self._links = _HardLinks(folder)

    def unpack(self) -> None:
        try:
            while self._way:
                self._make(records.read(self._reader))
        finally:
            os.close(self._here)
            self._links.close()

    def _make(self, record: Record) -> None:
        if record.kind == records.UP:
            self._leave()
            return
        if record.kind in (records.PLACE, records.END):
            raise ValueError("a folder that does not end")
        if not record.name:
            raise ValueError("an entry without a name")
        if record.kind == records.FOLDER:
            self._enter(record)
        elif record.kind == records.HARD_LINK:
            self._links.add(record, self._here)
        else:
            self._make_leaf(record)

    def _make_leaf(self, record: Record) -> None:
        if record.kind == records.FILE:
            self._make_file(record)
        elif record.kind == records.SYMLINK:
            os.symlink(records.read_target(self._reader, record), record.name, dir_fd=self._here)
        else:
            os.mknod(record.name, _DEVICES[record.kind] | 0o600, 0, dir_fd=self._here)
            os.chmod(record.name, record.mode, dir_fd=self._here)
        if record.kind != records.FILE:
            os.utime(record.name, ns=record.times_ns, dir_fd=self._here, follow_symlinks=False)
        if record.inode and record.kind != records.WHITEOUT:
            self._links.start(record, self._here)

    def _make_file(self, record: Record) -> None:
        descriptor = os.open(record.name, _NEW, 0o600, dir_fd=self._here)
        try:
            while (extent := records.read_extent(self._reader, record.size))[1]:
                offset, size = extent
                for piece in self._reader.pieces(size):
                    _write_at(descriptor, offset, piece)
                    offset += len(piece)
            os.ftruncate(descriptor, record.size)
            _set_attributes(descriptor, record)
        finally:
            os.close(descriptor)

    def _enter(self, record: Record) -> None:
        os.mkdir(record.name, 0o700, dir_fd=self._here)
        there = os.open(record.name, _FOLDER, dir_fd=self._here)
        os.close(self._here)
        self._here = there
        self._way.append(record)

    def _leave(self) -> None:
        folder = self._way.pop()
        above = os.open("..", _FOLDER, dir_fd=self._here) if self._way else -1
        if not self._way:
            self._links.remove()
        _set_attributes(self._here, folder)
        if self._way:
            os.close(self._here)
            self._here = above


class _HardLinks:
    """Files of which more names are to come, kept findable in a folder that goes in the end."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._name = os.urandom(16).hex()  # nobody's: it was not known when the others were chosen
        self._kept = -1
        self._num_missing: dict[int, int] = {}

    def start(self, record: Record, here: int) -> None:
        """Remembers a file that was just made."""
        if self._kept < 0:
            os.mkdir(self._name, 0o700, dir_fd=self._folder)
            self._kept = os.open(self._name, _FOLDER, dir_fd=self._folder)
        number = str(record.inode)
        os.link(record.name, number, src_dir_fd=here, dst_dir_fd=self._kept, follow_symlinks=False)
        self._num_missing[record.inode] = record.num_names - 1

    def add(self, record: Record, here: int) -> None:
        """Gives a remembered file one more name."""
        if record.inode not in self._num_missing:
            raise ValueError("a second name of a file that has no first")
        number = str(record.inode)
        os.link(number, record.name, src_dir_fd=self._kept, dst_dir_fd=here, follow_symlinks=False)
        self._num_missing[record.inode] -= 1
        if not self._num_missing[record.inode]:
            os.unlink(number, dir_fd=self._kept)
            del self._num_missing[record.inode]

    def remove(self) -> None:
        """Forgets all files, whose other names stay."""
        if self._kept >= 0:
            for number in self._num_missing:
                os.unlink(str(number), dir_fd=self._kept)
            os.rmdir(self._name, dir_fd=self._folder)

    def close(self) -> None:
        """Lets go of the folder."""
        if self._kept >= 0:
            os.close(self._kept)


def _write_at(descriptor: int, offset: int, data: memoryview) -> None:
    while data:
        written = os.pwrite(descriptor, data, offset)
        data, offset = data[written:], offset + written


def _set_attributes(descriptor: int, record: Record) -> None:
    """Gives a file or folder its extended attributes, permissions and times, in this order."""
    for name, value in record.xattrs:
        os.setxattr(descriptor, name, value)
    os.fchmod(descriptor, record.mode)
    os.utime(descriptor, ns=record.times_ns)
