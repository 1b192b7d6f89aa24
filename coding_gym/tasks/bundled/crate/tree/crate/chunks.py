"""The parts of a file: chunks with checksums, and the footer."""

from __future__ import annotations

import zlib

from crate.cursor import Cursor, varint
from crate.errors import CorruptError

MARK = b"CRATE1"
VALUE, INDEX = b"V", b"I"
_END = b"CEND"
_FOOTER_SIZE = 8 + len(_END)


def chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk of a kind."""
    checksum = zlib.crc32(kind + content).to_bytes(4)
    return kind + varint(len(content)) + content + checksum


def footer(index: int) -> bytes:
    """The footer of a file whose index is at that place."""
    return index.to_bytes(8) + _END


def read_chunk(data: bytes, position: int, kind: bytes) -> bytes:
    """The content of the chunk at a place in a file.

    Raises:
        CorruptError: if there is none of that kind, or it is damaged.
    """
    cursor = Cursor(data, position)
    found = cursor.take(1)
    content = cursor.take(cursor.varint())
    if found != kind or cursor.take(4) != zlib.crc32(kind + content).to_bytes(4):
        raise CorruptError(f"the chunk at {position} is damaged")
    return content


def read_footer(data: bytes) -> int:
    """The place of the index in a file.

    Raises:
        CorruptError: if it is no crate, or not all of one.
    """
    if not data.startswith(MARK):
        raise CorruptError("this is not a crate")
    cursor = Cursor(data, max(len(data) - _FOOTER_SIZE, len(MARK)))
    index = int.from_bytes(cursor.take(8))
    if cursor.take(len(_END)) != _END:
        raise CorruptError("the file is cut short")
    return index
