"""Values into bytes."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Mapping
from typing import Any

from crate.cursor import signed, varint
from crate.errors import ValueTypeError
from crate.texts import Texts

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)


def encode(value: Any, texts: Texts | None = None) -> bytes:
    """The bytes of a value.

    Args:
        value: what to encode.
        texts: the shared texts, to which new ones are added; without them nothing is shared.

    Raises:
        ValueTypeError: if a value, or one in it, cannot be kept.
    """
    match value:
        case None:
            return b"N"
        case bool():
            return b"T" if value else b"F"
        case int():
            return b"i" + signed(value)
        case float():
            return b"f" + struct.pack(">d", value)
        case str():
            return _encoded_text(value, texts)
        case bytes():
            return b"b" + varint(len(value)) + value
        case list() | tuple():
            return b"l" + varint(len(value)) + b"".join(encode(item, texts) for item in value)
        case Mapping():
            return b"m" + varint(len(value)) + _encoded_pairs(value, texts)
        case dt.datetime() if value.utcoffset() is not None:
            return b"t" + signed((value - EPOCH) // MICROSECOND)
    raise ValueTypeError(f"cannot keep {value!r}")


def _encoded_text(text: str, texts: Texts | None) -> bytes:
    number = None if texts is None else texts.number(text)
    if number is not None:
        return b"r" + varint(number)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ValueTypeError(f"cannot keep {text!r}") from None
    return b"s" + varint(len(data)) + data


def _encoded_pairs(pairs: Mapping[Any, Any], texts: Texts | None) -> bytes:
    data = b""
    for key, value in pairs.items():
        if not isinstance(key, str):
            raise ValueTypeError(f"cannot keep {key!r} as a key")
        data += encode(key, texts) + encode(value, texts)
    return data
