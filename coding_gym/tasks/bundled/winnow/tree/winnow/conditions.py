"""Conditions: true, false, or unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from winnow.comparing import compare, has, is_like
from winnow.operands import Operand, Row

Condition = Callable[[Row], bool | None]
"""Whether something is so; None if that is unknown."""


def comparison(symbol: str, left: Operand, right: Operand) -> Condition:
    """Two operands on both sides of ``=``, ``<`` and so on."""
    return lambda row: compare(symbol, left(row), right(row))


def is_in(value: Operand, members: Sequence[Operand]) -> Condition:
    """Whether a value is equal to one of several."""
    return any_of([comparison("=", value, member) for member in members])


def is_between(value: Operand, low: Operand, high: Operand) -> Condition:
    """Whether a value lies in a range."""
    return all_of([comparison(">=", value, low), comparison("<=", value, high)])


def matches(value: Operand, pattern: Operand) -> Condition:
    """Whether a text matches a pattern."""
    return lambda row: is_like(value(row), pattern(row))


def contains(value: Operand, part: Operand) -> Condition:
    """Whether a list or a text has a part."""
    return lambda row: has(value(row), part(row))


def is_missing(value: Operand) -> Condition:
    """Whether there is no value."""
    return lambda row: value(row) is None


def opposite(condition: Condition) -> Condition:
    """Turns true and false around."""

    def check(row: Row) -> bool | None:
        found = condition(row)
        return None if found is None else not found

    return check


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Joins conditions by ``and``."""
    return _joined(conditions, decisive=False)


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Joins conditions by ``or``."""
    return _joined(conditions, decisive=True)


def _joined(conditions: Sequence[Condition], *, decisive: bool) -> Condition:
    """Conditions of which one that is ``decisive`` decides, whatever the others are."""

    def check(row: Row) -> bool | None:
        is_known = True
        for condition in conditions:
            found = condition(row)
            if found is decisive:
                return decisive
            is_known = is_known and found is not None
        return not decisive if is_known else None

    return check
