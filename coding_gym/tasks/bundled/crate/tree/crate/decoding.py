"""Bytes into values."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from crate.cursor import Cursor
from crate.encoding import EPOCH, MICROSECOND
from crate.errors import CorruptError

_CONSTANTS = {b"N": None, b"T": True, b"F": False}


def decode(cursor: Cursor, texts: Sequence[str] = ()) -> Any:
    """The value that comes next.

    Args:
        cursor: where to read.
        texts: the shared texts.

    Raises:
        CorruptError: if there is no value.
    """
    tag = cursor.take(1)
    if tag in _CONSTANTS:
        return _CONSTANTS[tag]
    match tag:
        case b"i":
            return cursor.signed()
        case b"f":
            return struct.unpack(">d", cursor.take(8))[0]
        case b"b":
            return cursor.take(cursor.varint())
        case b"t":
            return _moment(cursor)
        case b"l":
            return [decode(cursor, texts) for _ in range(cursor.varint())]
        case b"m":
            return {_text(cursor, texts): decode(cursor, texts) for _ in range(cursor.varint())}
        case b"s" | b"r":
            cursor.position -= 1
            return _text(cursor, texts)
    raise CorruptError(f"there is no tag {tag!r}")


def _text(cursor: Cursor, texts: Sequence[str]) -> str:
    tag = cursor.take(1)
    if tag == b"r":
        number = cursor.varint()
        if number >= len(texts):
            raise CorruptError(f"there is no shared text {number}")
        return texts[number]
    if tag != b"s":
        raise CorruptError(f"expected a text, got the tag {tag!r}")
    content = cursor.take(cursor.varint())
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CorruptError(f"a text is not valid: {error.reason}") from None


def _moment(cursor: Cursor) -> Any:
    microseconds = cursor.signed()
    try:
        return EPOCH + microseconds * MICROSECOND
    except OverflowError:
        raise CorruptError("a moment is out of range") from None
