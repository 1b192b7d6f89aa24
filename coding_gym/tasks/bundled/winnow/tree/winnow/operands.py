"""Operands: what conditions are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """A record, and the parameters of the run that looks at it."""

    record: Mapping[str, Any]
    parameters: Mapping[str, Any]


Operand = Callable[[Row], Any]
"""Gives a value; None if it is missing."""


def constant(value: Any) -> Operand:
    """A value that is written in the query."""
    return lambda _: value


def parameter(name: str) -> Operand:
    """A value that each run brings along."""
    return lambda row: row.parameters[name]


def path(text: str) -> Operand:
    """A value in the record, below the keys and indices of a path such as ``items.0.price``."""
    steps = text.split(".")
    return lambda row: _followed(row.record, steps)


def _followed(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, (list, tuple)) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
