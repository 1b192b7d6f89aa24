"""Messages between owner, server and init: a JSON header, then raw bytes.

The owner also reads what comes out of a sandbox with this module, so nothing here trusts a length
that the other side gives.
"""

import json
import socket
import struct
import time
from typing import Any

_LENGTHS = struct.Struct("<II")
_CHUNK_BYTES = 1 << 20
_SMALL_BYTES = 1 << 14
MAX_HEADER_BYTES = 1 << 24
# Without what `json.dumps` and `json.loads` do besides, which costs memory: see `plan`.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode


class ProtocolError(Exception):
    """The other side sent something that is not a message."""


def pack(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Returns one message as bytes."""
    text = _encode(header).encode()
    return _LENGTHS.pack(len(text), len(body)) + text + body


def receive(
    channel: socket.socket, *, max_body_bytes: int, deadline: float | None = None
) -> tuple[dict[str, Any], bytes]:
    """Returns the next message.

    Args:
        channel: A stream socket.
        max_body_bytes: A longer body is refused before it is read.
        deadline: On the clock of ``time.monotonic``; None waits for ever.

    Raises:
        EOFError: The other side closed the channel.
        TimeoutError: The deadline passed.
        ProtocolError: Not a message, or too long a body.
    """
    text, body = receive_text(channel, max_body_bytes=max_body_bytes, deadline=deadline)
    return parse(text), body


def receive_text(
    channel: socket.socket, *, max_body_bytes: int, deadline: float | None = None
) -> tuple[bytes, bytes]:
    """Returns the next message as `receive` does, but with the header's text, for `parse`."""
    header_size, body_size = _LENGTHS.unpack(_exactly(channel, _LENGTHS.size, deadline))
    if header_size > MAX_HEADER_BYTES or body_size > max_body_bytes:
        raise ProtocolError(f"a message of {header_size} + {body_size} bytes is too long")
    # A small body comes along with the header, which saves a few system calls.
    joined_size = body_size if body_size <= _SMALL_BYTES else 0
    data = _exactly(channel, header_size + joined_size, deadline)
    return data[:header_size], data[header_size:] + _exactly(
        channel, body_size - joined_size, deadline
    )


def parse(text: bytes) -> dict[str, Any]:
    """Returns the header that a text describes; raises ProtocolError where it describes none."""
    try:
        decoded = text.decode()
        header, end = _decode(decoded)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {error}") from error
    if not isinstance(header, dict) or end != len(decoded):
        raise ProtocolError(f"the header must be one object, got {text[:80]!r}")
    return header


def _exactly(channel: socket.socket, size: int, deadline: float | None) -> bytes:
    """Returns ``size`` bytes; grows as they come, so that a lying length costs no memory."""
    data = bytearray()
    while len(data) < size:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no answer in time")
            channel.settimeout(left)
        chunk = channel.recv(min(size - len(data), _CHUNK_BYTES))
        if not chunk:
            raise EOFError("the channel was closed")
        data += chunk
    return bytes(data)
