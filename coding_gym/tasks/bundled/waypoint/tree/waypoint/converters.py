"""What the parameters of a pattern match, and what they become."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Protocol


class Converter(Protocol):
    """Turns the text of a segment into a value and back; both ways refuse with ``ValueError``."""

    def to_python(self, text: str) -> Any: ...

    def to_text(self, value: Any) -> str: ...


class StrConverter:
    """Any text that is not empty."""

    def to_python(self, text: str) -> str:
        if not text:
            raise ValueError("must not be empty")
        return text

    def to_text(self, value: Any) -> str:
        return self.to_python(str(value))


class PathConverter(StrConverter):
    """The rest of a path, slashes included; patterns know that it spans segments."""


class SlugConverter:
    """ASCII letters, digits, hyphens and underscores."""

    def to_python(self, text: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
            raise ValueError(f"{text!r} is not a slug")
        return text

    def to_text(self, value: Any) -> str:
        return self.to_python(str(value))


class IntConverter:
    """Whole numbers from zero, in ASCII digits."""

    def to_python(self, text: str) -> int:
        if not re.fullmatch(r"[0-9]+", text):
            raise ValueError(f"{text!r} is not a number")
        return int(text)

    def to_text(self, value: Any) -> str:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"{value!r} is not a whole number from zero")
        return str(value)


class DateConverter:
    """Calendar days as ``YYYY-MM-DD``."""

    def to_python(self, text: str) -> date:
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            raise ValueError(f"{text!r} is not a date")
        return date.fromisoformat(text)

    def to_text(self, value: Any) -> str:
        if not isinstance(value, date):
            raise ValueError(f"{value!r} is not a date")
        return f"{value:%Y-%m-%d}"


def default_converters() -> dict[str, Converter]:
    """The converters that every router starts with, by name."""
    return {
        "str": StrConverter(),
        "path": PathConverter(),
        "slug": SlugConverter(),
        "int": IntConverter(),
        "date": DateConverter(),
    }
