"""What can be wrong with a call, and what can be wrong in a cell."""

from __future__ import annotations

from enum import StrEnum


class CellarError(ValueError):
    """The root of all errors that are raised."""


class AddressError(CellarError):
    """There is no such cell."""


class FormulaError(CellarError):
    """A formula cannot be read."""


class Fault(StrEnum):
    """The value of a formula that has no result."""

    CYCLE = "#CYCLE!"
    DIVISION = "#DIV/0!"
    NAME = "#NAME?"
    NUMBER = "#NUM!"
    REFERENCE = "#REF!"
    VALUE = "#VALUE!"


class FaultFound(Exception):
    """Ends the evaluation of a formula; never leaves the package.

    Attributes:
        fault: the value that the formula gets.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault
