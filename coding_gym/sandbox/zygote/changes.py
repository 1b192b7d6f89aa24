"""What is changed in a sandbox, as its first process sends it to the owner and takes it back."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from coding_gym.sandbox.zygote import chunks, scratch, stillness, wire
from coding_gym.sandbox.zygote.packing import pack
from coding_gym.sandbox.zygote.steps import SetupError, step
from coding_gym.sandbox.zygote.unpacking import unpack

_STEP = "restore the snapshot"
# More often than Python takes to rewrite what it runs.
_NUM_REHEARSED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The folders that hold a sandbox's changes, below everything that is mounted on them.

    Attributes:
        folders: Names of places, and descriptors of their folders.
        newest_first: How the file system of the sandbox lists a folder.
    """

    folders: Mapping[str, int]
    newest_first: bool


def send(changes: Changes, channel: socket.socket) -> None:
    """Sends all changes to the owner, while no process of the sandbox runs."""
    try:
        with stillness.stopped():
            writer = chunks.writer_to(channel)
            pack(changes.folders, writer, newest_first=changes.newest_first)
    except (BrokenPipeError, ConnectionResetError):
        raise  # the owner is gone
    except OSError as error:
        channel.sendall(wire.pack({"error": f"no snapshot: {error}"}))


def restore(changes: Changes, *, channel: socket.socket) -> None:
    """Fills the folders, still empty, with what the owner sends.

    Raises:
        SetupError: It does not fit, or is no snapshot of such a sandbox.
    """
    with step(_STEP):
        try:
            unpack(chunks.reader_from(channel), changes.folders)
        except (ValueError, KeyError, wire.ProtocolError) as error:
            raise SetupError(_STEP, 0, f"it cannot be read: {error}") from error


def rehearse(folder: str) -> None:
    """Takes and restores a snapshot of a few files in an empty folder; see `rehearsal`."""
    source, copy = f"{folder}/source", f"{folder}/copy"
    os.mkdir(source)
    os.mkdir(copy)
    for number in range(_NUM_REHEARSED):
        os.close(os.open(f"{source}/{number}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
    data: list[bytes] = []
    writer = chunks.ChunkWriter(lambda chunk, _: data.append(chunk))
    reader = chunks.ChunkReader(lambda: (b"".join(data), False))
    for path in (source, copy):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if path == source:
            pack({"place": descriptor}, writer, newest_first=True)
        else:
            unpack(reader, {"place": descriptor})
        os.close(descriptor)
        scratch.remove(path)
