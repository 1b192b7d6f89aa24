"""Nodes into values."""

from __future__ import annotations

import operator
from collections.abc import Callable

from cellar.address import Address
from cellar.errors import Fault, FaultFound
from cellar.functions import Argument, call, single, to_number, to_text, to_truth
from cellar.nodes import Call, Cells, Constant, Node, Operation, Percent, Prefix, Value

Lookup = Callable[[Address], Value]
"""Gives the value of a cell."""

_COMPARISONS: dict[str, Callable[[float | str, float | str], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
}


def evaluate(node: Node, lookup: Lookup) -> Value:
    """The value of a formula; a fault, if it has no other."""
    try:
        return _value(node, lookup)
    except FaultFound as found:
        return found.fault


def _value(node: Node, lookup: Lookup) -> Value:
    value = single(_argument(node, lookup))
    if isinstance(value, Fault):
        raise FaultFound(value)
    return value


def _argument(node: Node, lookup: Lookup) -> Argument:
    match node:
        case Constant(value):
            return value
        case Cells(area):
            return [lookup(address) for address in area]
        case Prefix(symbol, operand):
            number = to_number(_value(operand, lookup))
            return -number if symbol == "-" else number
        case Percent(operand):
            return to_number(_value(operand, lookup)) / 100
        case Operation(symbol, left, right):
            return _operation(symbol, _value(left, lookup), _value(right, lookup))
        case Call(name, arguments):
            return _call(name, arguments, lookup)


def _call(name: str, arguments: tuple[Node, ...], lookup: Lookup) -> Value:
    if name == "IF" and 2 <= len(arguments) <= 3:
        if to_truth(_value(arguments[0], lookup)):
            return _value(arguments[1], lookup)
        return _value(arguments[2], lookup) if len(arguments) > 2 else False
    if name == "IFERROR" and len(arguments) == 2:
        try:
            return _value(arguments[0], lookup)
        except FaultFound:
            return _value(arguments[1], lookup)
    if name in ("IF", "IFERROR"):
        raise FaultFound(Fault.VALUE)
    return call(name, [_argument(argument, lookup) for argument in arguments])


def _operation(symbol: str, left: Value, right: Value) -> Value:
    if symbol == "&":
        return to_text(left) + to_text(right)
    if symbol in _COMPARISONS:
        return _compared(symbol, left, right)
    try:
        result = _ARITHMETIC[symbol](to_number(left), to_number(right))
    except ZeroDivisionError:
        raise FaultFound(Fault.DIVISION) from None
    except OverflowError:
        raise FaultFound(Fault.NUMBER) from None
    if isinstance(result, complex):
        raise FaultFound(Fault.NUMBER)
    return result


def _compared(symbol: str, left: Value, right: Value) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return _COMPARISONS[symbol](left.casefold(), right.casefold())
    if isinstance(left, str) or isinstance(right, str):
        if symbol in ("=", "<>"):
            return symbol == "<>"
        raise FaultFound(Fault.VALUE)
    return _COMPARISONS[symbol](to_number(left), to_number(right))
