"""Text that is HTML already, and text that is made so."""

from __future__ import annotations

from typing import Any

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


class Safe(str):
    """Text that is printed as it is. Whatever is made of it by ``str`` methods is not safe."""

    __slots__ = ()


def to_text(value: Any) -> str:
    """``value`` as it is printed, before escaping; None prints as nothing."""
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value)


def has_markup(value: Any) -> bool:
    """Whether ``value`` is safe text that would look different if it were escaped."""
    return isinstance(value, Safe) and value.translate(_ENTITIES) != value


def escape(value: Any) -> Safe:
    """``value`` as HTML; what is :class:`Safe` already stays as it is."""
    if isinstance(value, Safe):
        return value
    return Safe(to_text(value).translate(_ENTITIES))
