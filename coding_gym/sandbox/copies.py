"""Snapshots of folders that belong to one sandbox alone, for backends without an overlay."""

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from coding_gym.sandbox.removal import remove_folder
from coding_gym.sandbox.zygote.chunks import ChunkReader, ChunkWriter
from coding_gym.sandbox.zygote.packing import pack
from coding_gym.sandbox.zygote.unpacking import unpack


def pack_copies(folders: Mapping[str, Path]) -> bytes:
    """Returns everything in some folders, whose names it remembers.

    Raises:
        OSError: Something could not be read.
    """
    data = io.BytesIO()

    def add(chunk: bytes, _: bool) -> None:
        data.write(chunk)

    with _opened(folders) as descriptors:
        # As a tmpfs lists; other file systems have an order that no making of files decides.
        pack(descriptors, ChunkWriter(add), newest_first=True)
    return data.getvalue()


def unpack_copies(data: bytes, folders: Mapping[str, Path]) -> None:
    """Gives folders the content that `pack_copies` found in those of the same names.

    What is in them goes first.

    Raises:
        OSError: Something could not be made, as when the disk is full.
        ValueError: The data makes no sense, or names other folders.
    """
    for folder in folders.values():
        remove_folder(folder)
        folder.mkdir()
    with _opened(folders) as descriptors:
        unpack(ChunkReader(lambda: (data, False)), descriptors)


@contextmanager
def _opened(folders: Mapping[str, Path]) -> Iterator[dict[str, int]]:
    with ExitStack() as stack:
        opened = {}
        for name, path in folders.items():
            opened[name] = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, opened[name])
        yield opened
