"""Comparing values, some of which may be missing."""

from __future__ import annotations

import datetime as dt
import functools
import operator
import re
from collections.abc import Callable
from typing import Any

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# The first one that fits counts: truth values are numbers, and moments are dates, to Python.
_KINDS: tuple[type | tuple[type, ...], ...] = (bool, (int, float), str, dt.datetime, dt.date)


def compare(symbol: str, left: Any, right: Any) -> bool | None:
    """Whether a comparison holds; None if that is unknown."""
    if left is None or right is None:
        return None
    kind = _kind(left)
    if kind != _kind(right):
        return symbol == "!="
    is_ordered = kind < len(_KINDS)
    return (is_ordered or symbol in ("=", "!=")) and _OPERATORS[symbol](left, right)


def is_like(value: Any, pattern: Any) -> bool | None:
    """Whether a text matches a pattern; None if that is unknown."""
    if value is None or pattern is None:
        return None
    return bool(_expression(str(pattern)).fullmatch(str(value)))


def has(value: Any, part: Any) -> bool | None:
    """Whether a list or a text has a part; None if that is unknown."""
    if value is None or part is None:
        return None
    if isinstance(value, str):
        return isinstance(part, str) and part in value
    return isinstance(value, (list, tuple, set, frozenset)) and part in value


def sort_key(value: Any) -> tuple[int, Any]:
    """Puts values of one kind in their order, and the kinds one after the other."""
    kind = _kind(value)
    return (kind, value if kind < len(_KINDS) else str(value))


def _kind(value: Any) -> int:
    for kind, types in enumerate(_KINDS):
        if isinstance(value, types):
            return kind
    return len(_KINDS)


@functools.lru_cache
def _expression(pattern: str) -> re.Pattern[str]:
    signs = {"%": ".*", "_": "."}
    parts = (signs.get(character) or re.escape(character) for character in pattern)
    return re.compile("".join(parts), re.DOTALL | re.IGNORECASE)
