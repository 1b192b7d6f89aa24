"""What a formula consists of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cellar.address import Area
from cellar.errors import Fault

Value = float | str | bool | None
"""What a cell can hold or show; a `Fault` is a text, and None is a blank."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is written in the formula, or the fault in place of a lost reference."""

    value: float | str | bool | Fault


@dataclass(frozen=True, slots=True)
class Cells:
    """A reference to an area, which may be a single cell."""

    area: Area


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator between two operands."""

    symbol: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Prefix:
    """A sign in front of an operand."""

    symbol: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Percent:
    """A percent sign behind an operand."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments."""

    name: str
    arguments: tuple[Node, ...]


Node = Constant | Cells | Operation | Prefix | Percent | Call


def areas(node: Node) -> Iterator[Area]:
    """The areas that a formula mentions, evaluated or not."""
    match node:
        case Cells(area):
            yield area
        case Operation(_, left, right):
            yield from areas(left)
            yield from areas(right)
        case Prefix(_, operand) | Percent(operand):
            yield from areas(operand)
        case Call(_, arguments):
            for argument in arguments:
                yield from areas(argument)
