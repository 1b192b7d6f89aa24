"""Messages between owner, server and init: a JSON header, then raw bytes.

The owner also reads what comes out of a sandbox with this module, so nothing here trusts a length
that the other side gives. Data of unknown length are sent in chunks, one message each, so that a
sandbox with half a gigabyte of changes needs no half gigabyte in its first process.
"""

import json
import socket
import struct
import time
from typing import Any

# Larger ones take longer: each copy of one needs new pages of memory.
CHUNK_BYTES = 1 << 18
MAX_HEADER_BYTES = 1 << 24
_LENGTHS = struct.Struct("<II")
_DESCRIPTOR = struct.Struct("i")
_SMALL_BYTES, _JOINED_BYTES = 1 << 14, 1 << 16
# Without what `json.dumps` and `json.loads` do besides, which costs memory in each sandbox.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode


class ProtocolError(ValueError):
    """The other side sent something that is not a message."""


def pack(header: dict[str, Any], *body: bytes) -> bytes:
    """Returns one message, whose body may come in pieces, as bytes."""
    return pack_text(_encode(header).encode(), *body)


def pack_text(text: bytes, *body: bytes) -> bytes:
    """Returns one message whose header was made before, by `header_text`."""
    return b"".join((_LENGTHS.pack(len(text), sum(map(len, body))), text, *body))


def header_text(header: dict[str, Any]) -> bytes:
    """Returns a header as bytes."""
    return _encode(header).encode()


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
    header_size, body_size = _checked(_exactly(channel, _LENGTHS.size, deadline), max_body_bytes)
    # One call less for all but long bodies, which take longer to copy.
    joined_size = body_size if body_size <= _JOINED_BYTES else 0
    data = _exactly(channel, header_size + joined_size, deadline)
    rest = _exactly(channel, body_size - joined_size, deadline)
    return parse(data[:header_size]), data[header_size:] + rest


def receive_single(channel: socket.socket, *, max_body_bytes: int) -> tuple[bytes, bytes]:
    """Returns the text of the next message's header, for `parse`, and its body.

    For a channel on which another message may not follow unasked.
    It is read as it comes, most often at once; what follows it is an error. The time limit of the
    channel, if it has one, is that of the whole message.
    """
    timeout_s = channel.gettimeout()
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    data = _some(channel, _SMALL_BYTES, None)
    if len(data) < _LENGTHS.size:
        data += _exactly(channel, _LENGTHS.size - len(data), deadline)
    header_size, body_size = _checked(data[: _LENGTHS.size], max_body_bytes)
    missing = _LENGTHS.size + header_size + body_size - len(data)
    if missing < 0:
        raise ProtocolError(f"{-missing} bytes follow a message")
    if missing:
        data += _exactly(channel, missing, deadline)
        channel.settimeout(timeout_s)
    start = _LENGTHS.size + header_size
    return data[_LENGTHS.size : start], data[start:]


def receive_descriptors(
    channel: socket.socket, num_bytes: int, num_descriptors: int
) -> tuple[bytes, list[int]]:
    """Returns at most so many bytes and descriptors, which are closed when a program is executed.

    `socket.recv_fds` ignores the flag that asks for that.
    """
    size = socket.CMSG_LEN(num_descriptors * _DESCRIPTOR.size)
    data, messages, _, _ = channel.recvmsg(num_bytes, size, socket.MSG_CMSG_CLOEXEC)
    return data, [
        number for *_, content in messages for (number,) in _DESCRIPTOR.iter_unpack(content)
    ]


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


def _checked(lengths: bytes, max_body_bytes: int) -> tuple[int, int]:
    """Returns the sizes of a message's parts; raises ProtocolError where they are too large."""
    header_size, body_size = _LENGTHS.unpack(lengths)
    if header_size > MAX_HEADER_BYTES or body_size > max_body_bytes:
        raise ProtocolError(f"a message of {header_size} + {body_size} bytes is too long")
    return header_size, body_size


def _exactly(channel: socket.socket, size: int, deadline: float | None) -> bytes:
    """Returns ``size`` bytes; grows as they come, so that a lying length costs no memory."""
    data = _some(channel, size, deadline) if size else b""
    if len(data) == size:
        return data
    grown = bytearray(data)
    while len(grown) < size:
        grown += _some(channel, size - len(grown), deadline)
    return bytes(grown)


def _some(channel: socket.socket, max_bytes: int, deadline: float | None) -> bytes:
    """Returns at most so many bytes, as soon as there are any."""
    if deadline is not None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        channel.settimeout(left)
    data = channel.recv(min(max_bytes, CHUNK_BYTES))
    if not data:
        raise EOFError("the channel was closed")
    return data
