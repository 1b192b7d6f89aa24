"""Finding out how a file is encoded."""

from __future__ import annotations

import codecs
from pathlib import Path

from stockroom.errors import ListError

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def detect_encoding(data: bytes) -> str:
    """The encoding of a list: what its mark says, else UTF-8 if it can be, else Windows-1252."""
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return encoding
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def read_text(path: Path) -> str:
    """The text of a list in whatever encoding it has; ``ListError`` if it has none that we know."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ListError(f"cannot read {path}: {error.strerror}") from error
    encoding = detect_encoding(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ListError(f"{path.name}: not valid {encoding} at byte {error.start}") from error
