"""Values as one line of text that survives a shell and a cut at a number of characters."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

_MAX_BYTES = 16 << 20  # of a value: what the other side sends may be made to fill the memory

# What a reply line looks like: the slice's start, the length of the whole, the slice.
_SLICE = re.compile(r"^\[(\d{1,9})/(\d{1,9})\] ([0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]*)", re.MULTILINE)


def pack(value: Any) -> str:
    """Returns a JSON value as one line of text without white space, quotes or backslashes."""
    raw = json.dumps(value, separators=(",", ":")).encode()
    return base64.b85encode(zlib.compress(raw, 9)).decode()


def unpack(text: str) -> Any:
    """Returns the value that `pack` made into text.

    Raises:
        ValueError: The text is not one that `pack` made.
    """
    try:
        raw = zlib.decompressobj().decompress(base64.b85decode(text.strip()), _MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise ValueError("not a packed value: too large")
        return json.loads(raw)
    except (zlib.error, RecursionError) as problem:
        raise ValueError(f"not a packed value: {problem}") from None


def format_slice(text: str, start: int, size: int) -> str:
    """Returns the reply line that holds ``size`` characters of a packed text."""
    return f"[{start}/{len(text)}] {text[start : start + size]}"


def parse_slice(reply: str) -> tuple[int, int, str] | None:
    """Finds a slice in a reply: its start, the length of the whole, and what arrived of it."""
    found = _SLICE.search(reply)
    if found is None:
        return None
    return int(found.group(1)), int(found.group(2)), found.group(3)
