"""Where cells are: addresses, the references to them in formulas, and areas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cellar.errors import AddressError

LAST_COLUMN = 26 + 26**2 + 26**3
LAST_ROW = 999_999
_REFERENCE = re.compile(r"(\$?)([A-Za-z]{1,3})(\$?)([1-9][0-9]{0,5})")


def column_name(number: int) -> str:
    """The letters of a column, which are counted from 1."""
    name = ""
    while number:
        number, letter = divmod(number - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def column_number(name: str) -> int:
    """The number of a column, from its letters in either case."""
    number = 0
    for letter in name.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """One cell; rows and columns count from 1."""

    row: int
    column: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """The cell that ``text`` names, such as ``"B7"``.

        Raises:
            AddressError: if it names none.
        """
        return Reference.parse(text).address

    def __str__(self) -> str:
        return f"{column_name(self.column)}{self.row}"


@dataclass(frozen=True, slots=True)
class Reference:
    """How a formula names a cell: its address, and what of it stays when the formula is copied."""

    address: Address
    keeps_column: bool = False
    keeps_row: bool = False

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Reads ``"B7"``, ``"$B7"``, ``"B$7"`` or ``"$B$7"``.

        Raises:
            AddressError: if it is none of these.
        """
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise AddressError(f"{text!r} is not a cell")
        address = Address(int(match[4]), column_number(match[2]))
        return cls(address, keeps_column=bool(match[1]), keeps_row=bool(match[3]))

    def moved(self, columns: int, rows: int) -> Reference | None:
        """The reference in a formula copied that far; None if it would leave the sheet."""
        column = self.address.column + (0 if self.keeps_column else columns)
        row = self.address.row + (0 if self.keeps_row else rows)
        if not (1 <= column <= LAST_COLUMN and 1 <= row <= LAST_ROW):
            return None
        return Reference(Address(row, column), self.keeps_column, self.keeps_row)

    def __str__(self) -> str:
        column = column_name(self.address.column)
        return "$" * self.keeps_column + column + "$" * self.keeps_row + str(self.address.row)


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of cells, of which the upper left and the lower right one are given."""

    first: Address
    last: Address

    @classmethod
    def between(cls, one: Address, other: Address) -> Area:
        """The area that has these two cells in opposite corners."""
        rows = sorted((one.row, other.row))
        columns = sorted((one.column, other.column))
        return cls(Address(rows[0], columns[0]), Address(rows[1], columns[1]))

    def __contains__(self, address: Address) -> bool:
        return (
            self.first.row <= address.row <= self.last.row
            and self.first.column <= address.column <= self.last.column
        )

    def __iter__(self) -> Iterator[Address]:
        for row in range(self.first.row, self.last.row + 1):
            for column in range(self.first.column, self.last.column + 1):
                yield Address(row, column)

    def __str__(self) -> str:
        return f"{self.first}:{self.last}"
