"""What is changed in a sandbox, as its first process sends it to the owner and takes it back."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from coding_gym.sandbox.zygote import chunks, wire
from coding_gym.sandbox.zygote.packing import pack
from coding_gym.sandbox.zygote.steps import SetupError, step
from coding_gym.sandbox.zygote.unpacking import unpack

_STEP = "restore the snapshot"


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
    """Sends all changes to the owner; no process of the sandbox runs meanwhile."""
    try:
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
