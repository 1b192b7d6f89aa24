"""A stream of bytes of unknown length, sent as messages of about a megabyte.

So that a sandbox with half a gigabyte of changes needs no half gigabyte in its first process.
"""

import socket
from collections.abc import Callable

from coding_gym.sandbox.zygote import wire

CHUNK_BYTES = 1 << 20
# A chunk is sent when it is full, and what fills it may be as large as one itself.
MAX_CHUNK_BYTES = 2 * CHUNK_BYTES


class ChunkWriter:
    """Collects what is written into chunks.

    Args:
        send: Takes a chunk, and whether more will follow.
    """

    def __init__(self, send: Callable[[bytes, bool], None]) -> None:
        self._send = send
        self._pending = bytearray()

    def write(self, data: bytes) -> None:
        """Adds bytes."""
        for start in range(0, len(data), CHUNK_BYTES):
            self._pending += data[start : start + CHUNK_BYTES]
            if len(self._pending) >= CHUNK_BYTES:
                self._send(bytes(self._pending), True)
                self._pending.clear()

    def finish(self) -> None:
        """Sends what is left."""
        self._send(bytes(self._pending), False)


class ChunkReader:
    """Gives the bytes of chunks back in pieces of any size.

    Args:
        receive: Returns the next chunk, and whether more will follow.
    """

    def __init__(self, receive: Callable[[], tuple[bytes, bool]]) -> None:
        self._receive = receive
        self._chunk = memoryview(b"")
        self._more = True

    def read(self, size: int) -> bytes:
        """Returns exactly ``size`` bytes; raises ValueError where there are fewer."""
        pieces = []
        while size:
            self._fill()
            if not self._chunk:
                raise ValueError("it ends too early")
            piece, self._chunk = self._chunk[:size], self._chunk[size:]
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def finish(self) -> None:
        """Raises ValueError where anything is left."""
        self._fill()
        if self._chunk:
            raise ValueError("something follows its end")

    def _fill(self) -> None:
        while not self._chunk and self._more:
            chunk, self._more = self._receive()
            self._chunk = memoryview(chunk)


def writer_to(channel: socket.socket) -> ChunkWriter:
    """Returns a writer whose chunks are messages on a channel."""

    def send(chunk: bytes, more: bool) -> None:
        channel.sendall(wire.pack({"more": more}, chunk))

    return ChunkWriter(send)


def reader_from(channel: socket.socket) -> ChunkReader:
    """Returns a reader of what `writer_to` sends at the other end."""

    def receive() -> tuple[bytes, bool]:
        header, body = wire.receive(channel, max_body_bytes=MAX_CHUNK_BYTES)
        return body, bool(header["more"])

    return ChunkReader(receive)
