"""Packs and receives messages between owners and zygotes or first processes.

A message is a JSON header and raw bytes. Sandboxes also send messages to the owner, so no received
length is trusted. Snapshots are passed as memory files, whose descriptors come with a message.
"""

import json
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from coding_gym.sandbox.inside.request import from_json, to_json

MAX_HEADER_BYTES = 1 << 24
_LENGTHS = struct.Struct("<II")
_DESCRIPTOR = struct.Struct("i")
_CHUNK_BYTES = 1 << 18


# Not `json.dumps` and `json.loads`, which touch more memory, in each sandbox.
_encode = json.JSONEncoder(separators=(",", ":"), default=to_json).encode
_decode = json.JSONDecoder().raw_decode
_decode_request = json.JSONDecoder(object_hook=from_json).raw_decode


class ProtocolError(ValueError):
    """The received bytes are not a message, or the message is too long."""


def pack(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Returns one message as bytes."""
    text = _encode(header).encode()
    return b"".join((_LENGTHS.pack(len(text), len(body)), text, body))


def receive(
    channel: socket.socket, *, max_body_bytes: int, deadline: float | None = None
) -> tuple[dict[str, Any], bytes]:
    """Returns the header and body of the next message.

    Args:
        channel: A stream socket.
        max_body_bytes: The maximum size of the body; a larger body is not read.
        deadline: Time on the clock of ``time.monotonic``; None for no limit.

    Raises:
        EOFError: The other side closed the channel.
        TimeoutError: The deadline passed.
        ProtocolError: The bytes are not a message, or the message is too long.
    """
    lengths = _receive_exactly(channel, _LENGTHS.size, deadline)
    text, body = _receive_rest(channel, lengths, max_body_bytes, deadline)
    return _parse(text, _decode), body


def receive_request(
    channel: socket.socket, *, max_body_bytes: int = 0
) -> tuple[dict[str, Any], bytes]:
    """Receives a message like `receive`; its header gets a descriptor as ``file``, or -1.

    Only for messages of the owner, because a sandbox could send any number of descriptors.
    """
    lengths, descriptors = receive_descriptors(channel, _LENGTHS.size, 1)
    if not lengths:
        raise EOFError("the channel was closed")
    lengths += _receive_exactly(channel, _LENGTHS.size - len(lengths), None)
    text, body = _receive_rest(channel, lengths, max_body_bytes, None)
    header = _parse(text, _decode_request)
    header["file"] = descriptors[0] if descriptors else -1
    return header, body


def _receive_rest(
    channel: socket.socket, lengths: bytes, max_body_bytes: int, deadline: float | None
) -> tuple[bytes, bytes]:
    """Returns the header and body that follow the lengths of a message."""
    header_size, body_size = _LENGTHS.unpack(lengths)
    if header_size > MAX_HEADER_BYTES or body_size > max_body_bytes:
        raise ProtocolError(f"header of {header_size} or body of {body_size} bytes is too long")
    header = _receive_exactly(channel, header_size, deadline)
    return header, _receive_exactly(channel, body_size, deadline)


def receive_descriptors(
    channel: socket.socket, num_bytes: int, num_descriptors: int
) -> tuple[bytes, list[int]]:
    """Returns bytes and close-on-exec descriptors of one receive, at most these numbers of each.

    `socket.recv_fds` does not support close-on-exec.
    """
    size = socket.CMSG_LEN(num_descriptors * _DESCRIPTOR.size)
    data, messages, _, _ = channel.recvmsg(num_bytes, size, socket.MSG_CMSG_CLOEXEC)
    return data, [
        number for *_, content in messages for (number,) in _DESCRIPTOR.iter_unpack(content)
    ]


def _parse(text: bytes, decode: Callable[[str], tuple[Any, int]]) -> dict[str, Any]:
    """Returns the header that a text encodes; raises ProtocolError if it is not a JSON object."""
    try:
        decoded = text.decode()
        header, end = decode(decoded)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a header must be JSON: {error}") from error
    if not isinstance(header, dict) or end != len(decoded):
        raise ProtocolError(f"a header must be one JSON object, got {text[:80]!r}")
    return header


def _receive_exactly(channel: socket.socket, size: int, deadline: float | None) -> bytes:
    """Returns ``size`` bytes; allocates memory only for bytes that have arrived."""
    data = bytearray()
    while len(data) < size:
        if deadline is not None:
            if (remaining_s := deadline - time.monotonic()) <= 0:
                raise TimeoutError("no reply in time")
            channel.settimeout(remaining_s)
        chunk = channel.recv(min(size - len(data), _CHUNK_BYTES))
        if not chunk:
            raise EOFError("the channel was closed")
        data += chunk
    return bytes(data)
