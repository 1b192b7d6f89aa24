"""The functions of formulas, apart from those that choose what is evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal

from cellar.errors import Fault, FaultFound
from cellar.nodes import Value

Argument = Value | list[Value]
"""A value, or the values of the cells of a reference."""


def single(argument: Argument) -> Value:
    """The only value of an argument.

    Raises:
        FaultFound: if it is an area of several cells.
    """
    if not isinstance(argument, list):
        return argument
    if len(argument) > 1:
        raise FaultFound(Fault.VALUE)
    return argument[0]


def to_number(value: Value) -> float:
    """The number that a value counts as.

    Raises:
        FaultFound: if it is a text or a fault.
    """
    if isinstance(value, Fault):
        raise FaultFound(value)
    if isinstance(value, str):
        raise FaultFound(Fault.VALUE)
    return 0 if value is None else value + 0


def to_text(value: Value) -> str:
    """The text that a value is shown as.

    Raises:
        FaultFound: if it is a fault.
    """
    if isinstance(value, Fault):
        raise FaultFound(value)
    return show(value)


def show(value: Value) -> str:
    """What stands in the cell of a value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def to_truth(value: Value) -> bool:
    """The truth value that a value counts as: numbers other than zero are true."""
    return to_number(value) != 0


def numbers(arguments: Sequence[Argument]) -> list[float]:
    """The numbers among arguments; texts, truth values and blanks in cells are left out."""
    found = []
    for argument in arguments:
        if isinstance(argument, list):
            counted = (v for v in argument if isinstance(v, (int, float, Fault)))
            found += [to_number(v) for v in counted if not isinstance(v, bool)]
        else:
            found.append(to_number(argument))
    return found


def call(name: str, arguments: Sequence[Argument]) -> Value:
    """The result of a function.

    Raises:
        FaultFound: if there is no such function, or it has no result for these arguments.
    """
    if name in _OF_MANY:
        return _OF_MANY[name](numbers(arguments))
    if name not in _OF_FEW:
        raise FaultFound(Fault.NAME)
    least, most, function = _OF_FEW[name]
    if not least <= len(arguments) <= most:
        raise FaultFound(Fault.VALUE)
    return function(*map(single, arguments))


def _average(found: list[float]) -> float:
    if not found:
        raise FaultFound(Fault.DIVISION)
    return sum(found) / len(found)


def _round(value: Value, digits: Value = 0) -> float:
    """Rounds halves away from zero, as people do; digits below zero round to tens and hundreds."""
    step = Decimal(1).scaleb(-int(to_number(digits)))
    rounded = (Decimal(str(to_number(value))) / step).quantize(Decimal(1), ROUND_HALF_UP) * step
    return float(rounded)


def _log10(value: Value) -> float:
    number = to_number(value)
    if number <= 0:
        raise FaultFound(Fault.NUMBER)
    return math.log10(number)


_OF_MANY: dict[str, Callable[[list[float]], Value]] = {
    "SUM": sum,
    "AVERAGE": _average,
    "MIN": lambda found: min(found, default=0),
    "MAX": lambda found: max(found, default=0),
    "COUNT": len,
    "AND": lambda found: all(number != 0 for number in found),
    "OR": lambda found: any(number != 0 for number in found),
}
_OF_FEW: dict[str, tuple[int, int, Callable[..., Value]]] = {
    "NOT": (1, 1, lambda value: not to_truth(value)),
    "ABS": (1, 1, lambda value: abs(to_number(value))),
    "ROUND": (1, 2, _round),
    "LOG10": (1, 1, _log10),
    "LEN": (1, 1, lambda value: len(to_text(value))),
    "UPPER": (1, 1, lambda value: to_text(value).upper()),
}
