"""A sheet of cells."""

from __future__ import annotations

from cellar.address import Address, Area
from cellar.errors import Fault
from cellar.evaluation import evaluate
from cellar.functions import show
from cellar.links import Links
from cellar.nodes import Node, Value, areas
from cellar.parser import parse
from cellar.rewriting import moved_formula


class Sheet:
    """Cells by address, such as ``sheet["B7"]``; storing gives a content, reading the value."""

    def __init__(self) -> None:
        self._contents: dict[Address, float | str | bool] = {}
        self._formulas: dict[Address, Node] = {}
        self._values: dict[Address, Value] = {}
        self._links = Links()
        self._rings: frozenset[Address] | None = None

    def __setitem__(self, cell: str, content: Value) -> None:
        """Stores a content.

        Raises:
            AddressError: if there is no such cell.
            FormulaError: if it is a formula that cannot be read; the cell stays as it was.
        """
        self._store(Address.parse(cell), content)

    def __getitem__(self, cell: str) -> Value:
        """The value of a cell; None if it is blank."""
        address = Address.parse(cell)
        if address in self._formulas and address not in self._values:
            self._compute(address)
        return self._value(address)

    def __delitem__(self, cell: str) -> None:
        self._store(Address.parse(cell), None)

    def formula(self, cell: str) -> str | None:
        """The formula in a cell; None if it holds none."""
        address = Address.parse(cell)
        return str(self._contents[address]) if address in self._formulas else None

    def copy(self, source: str, target: str) -> None:
        """Puts what one cell holds into another one; references in a formula move along."""
        start, end = Address.parse(source), Address.parse(target)
        content = self._contents.get(start)
        if start in self._formulas:
            content = moved_formula(str(content), end.column - start.column, end.row - start.row)
        self._store(end, content)

    def used(self) -> str | None:
        """The smallest area that holds all contents, such as ``"A1:C7"``; None if all is blank."""
        if not self._contents:
            return None
        rows = [address.row for address in self._contents]
        columns = [address.column for address in self._contents]
        return str(Area(Address(min(rows), min(columns)), Address(max(rows), max(columns))))

    def table(self, area: str) -> list[list[str]]:
        """What the cells of an area such as ``"A1:C7"`` show, row by row."""
        first, _, last = area.partition(":")
        corners = Area.between(Address.parse(first), Address.parse(last or first))
        rows: dict[int, list[str]] = {}
        for address in corners:
            rows.setdefault(address.row, []).append(show(self[str(address)]))
        return list(rows.values())

    def _store(self, address: Address, content: Value) -> None:
        is_formula = isinstance(content, str) and content.startswith("=")
        node = parse(str(content)) if is_formula else None
        self._contents.pop(address, None)
        if self._formulas.pop(address, None) is not None:
            self._links.disconnect(address)
            self._rings = None
        if content is not None and content != "":
            self._contents[address] = content
        if node is not None:
            self._formulas[address] = node
            self._links.connect(address, areas(node))
            self._rings = None
        for stale in (address, *self._links.affected(address)):
            self._values.pop(stale, None)

    def _value(self, address: Address) -> Value:
        """The value of a cell, which is no formula or has been computed."""
        if address in self._formulas:
            return self._values[address]
        return self._contents.get(address)

    def _compute(self, wanted: Address) -> None:
        """Computes a formula, those that it mentions before it."""
        if self._rings is None:
            self._rings = self._links.rings()
        pending = [wanted]
        while pending:
            address = pending.pop()
            if address in self._values:
                continue
            if address in self._rings:
                self._values[address] = Fault.CYCLE
                continue
            missing = [s for s in self._links.sources(address) if s not in self._values]
            if missing:
                pending += [address, *missing]
            else:
                self._values[address] = evaluate(self._formulas[address], self._value)
