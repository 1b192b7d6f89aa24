"""Makes files again from a snapshot, whoever wrote it."""

import os
import stat
from collections.abc import Mapping

from coding_gym.sandbox.zygote import tar_records
from coding_gym.sandbox.zygote.chunks import ChunkReader
from coding_gym.sandbox.zygote.placing import Parts, Placer, set_attributes, write_at
from coding_gym.sandbox.zygote.tar_records import Record

# Added to the name of a place: holds its files of several names, all of which are links to these.
LINKS = ".links"
_NODES = {
    tar_records.FIFO: stat.S_IFIFO,
    tar_records.SOCKET: stat.S_IFSOCK,
    tar_records.DEVICE: stat.S_IFCHR,
}


def unpack(reader: ChunkReader, folders: Mapping[str, int]) -> None:
    """Fills empty folders with what a snapshot holds.

    Args:
        reader: Gives the bytes that `packing.pack` wrote.
        folders: Names of places, and descriptors of their folders.

    Raises:
        OSError: Something could not be made, as when the disk is full.
        ValueError: The bytes make no sense, or name a place that is not there.
    """
    left = dict(folders)
    record = tar_records.read(reader)
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
        self._last = [place]
        # Not a name of the snapshot, whose names were chosen before this one was.
        self._links = os.urandom(16).hex()
        self._has_links = False
        self._placer = Placer(folder)

    def unpack(self, place: Record) -> Record | None:
        """Makes the place itself and all that follows; returns the record of the next place."""
        try:
            self._make(place, ())
            while (record := tar_records.read(self._reader)) is not None:
                names = self._names(record)
                if len(names) == 1:
                    break
                self._make(record, self._parts(names))
            if self._has_links:
                self._placer.remove_folder((self._links,))
            self._placer.finish()
        finally:
            self._placer.close()
        return record

    def _names(self, record: Record) -> list[str]:
        """Returns the components of an entry's path, all of them."""
        if not 0 <= record.num_shared <= len(self._last):
            raise ValueError("an entry that shares more than there is")
        names = [*self._last[: record.num_shared], *_split(record.path)]
        if names[0] == self._place:
            self._last = names
        return names

    def _parts(self, names: list[str]) -> Parts:
        """Returns where an entry is to be made, below the folder."""
        if names[0] == self._place:
            return tuple(names[1:])
        if names[0] != self._place + LINKS:
            raise ValueError("an entry outside every place")
        self._has_links = True
        return (self._links, *names[1:])

    def _make(self, record: Record, parts: Parts) -> None:
        if record.kind == tar_records.FOLDER:
            self._placer.make_folder(parts, record.attributes)
        elif not parts:
            raise ValueError(f"a place that is an entry of type {record.kind!r}")
        elif record.kind == tar_records.FILE:
            self._make_file(record, parts)
        elif record.kind == tar_records.SYMLINK:
            target = os.fsdecode(record.target)
            self._placer.make_symlink(parts, target, record.attributes.times_ns)
        elif record.kind == tar_records.LINK:
            self._placer.make_link(parts, self._parts(_split(record.target)))
        else:
            self._placer.make_node(parts, _NODES[record.kind], record.attributes)

    def _make_file(self, record: Record, parts: Parts) -> None:
        descriptor = self._placer.make_file(parts)
        try:
            end = 0
            for start, length in record.extents:
                for piece in self._reader.pieces(length):
                    write_at(descriptor, piece, start)
                    end = start = start + len(piece)
            self._reader.read(len(tar_records.padding(tar_records.num_stored(record))))
            if end != record.size:
                os.ftruncate(descriptor, record.size)
            set_attributes(descriptor, record.attributes)
        finally:
            os.close(descriptor)


def _split(path: bytes) -> list[str]:
    """Returns the components of a path; raises ValueError where one is no name."""
    names = os.fsdecode(path).split("/")
    if not {"", ".", ".."}.isdisjoint(names):
        raise ValueError(f"an entry named {path[:99]!r}")
    return names
