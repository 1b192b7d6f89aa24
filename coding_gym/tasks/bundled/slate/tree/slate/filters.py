"""The filters that every environment has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slate.errors import RenderError
from slate.escaping import Safe, escape, has_markup, to_text
from slate.expressions import Filter, Missing


def default(value: Any, other: Any = "") -> Any:
    """``other`` if the value is missing or none."""
    return other if value is None or isinstance(value, Missing) else value


def truncate(value: Any, length: int, end: str = "…") -> str:
    """At most ``length`` characters, ``end`` included where something was cut off."""
    text = to_text(value)
    if len(text) <= length:
        return text
    return text[: max(length - len(end), 0)].rstrip() + end


def join(items: Iterable[Any], separator: str = "") -> str:
    """The items in one text; if there is markup in it, all the rest is escaped."""
    parts = list(items)
    if not any(has_markup(part) for part in (separator, *parts)):
        return separator.join(to_text(part) for part in parts)
    return Safe(escape(separator).join(escape(part) for part in parts))


def replace(value: Any, old: str, new: str) -> str:
    """The text with every ``old`` replaced; if there is markup in it, all the rest is escaped."""
    if not old:
        raise RenderError("replace needs a text to look for")
    if not (has_markup(value) or has_markup(new)):
        return to_text(value).replace(old, new)
    finish = Safe if isinstance(value, Safe) else escape
    return Safe(escape(new).join(finish(part) for part in to_text(value).split(old)))


FILTERS: dict[str, Filter] = {
    "default": default,
    "escape": escape,
    "join": join,
    "length": len,
    "lower": lambda value: to_text(value).lower(),
    "replace": replace,
    "safe": lambda value: Safe(to_text(value)),
    "sort": sorted,
    "trim": lambda value: to_text(value).strip(),
    "truncate": truncate,
    "upper": lambda value: to_text(value).upper(),
}
