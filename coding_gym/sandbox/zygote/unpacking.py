"""Makes files from the tar of a snapshot, which is not trusted."""

import os
import socket
from collections.abc import Mapping, Sequence

from coding_gym.sandbox.zygote import tar_records as tar
from coding_gym.sandbox.zygote import wire
from coding_gym.sandbox.zygote.placing import FILE, FOLDER_FLAGS, LINK, Placer, Record
from coding_gym.sandbox.zygote.steps import SetupError, step
from coding_gym.sandbox.zygote.wire import ChunkReader

# Added to the name of a place: holds its files of several names, all of which are links to these.
LINKS = ".links"
_STEP = "restore the snapshot"


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
        if top != self._place + LINKS:
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
            if top != self._place + LINKS or len(target) != 1:
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
