"""Which formulas mention which cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

from cellar.address import Address, Area


class Links:
    """The areas that each formula mentions, and the formulas that mention a cell."""

    def __init__(self) -> None:
        self._areas: dict[Address, frozenset[Area]] = {}
        self._readers: dict[Area, set[Address]] = {}

    def connect(self, formula: Address, mentioned: Iterable[Area]) -> None:
        """Notes what the formula in a cell mentions."""
        self._areas[formula] = frozenset(mentioned)
        for area in self._areas[formula]:
            self._readers.setdefault(area, set()).add(formula)

    def disconnect(self, formula: Address) -> None:
        """Forgets the formula in a cell."""
        for area in self._areas.pop(formula):
            self._readers[area].discard(formula)
            if not self._readers[area]:
                del self._readers[area]

    def sources(self, formula: Address) -> Iterator[Address]:
        """The formulas among the cells that a formula mentions."""
        for area in self._areas[formula]:
            yield from (address for address in area if address in self._areas)

    def affected(self, changed: Address) -> set[Address]:
        """The formulas that depend on a cell, directly or not."""
        found: set[Address] = set()
        pending = [changed]
        while pending:
            address = pending.pop()
            for area, readers in self._readers.items():
                if address in area:
                    pending += readers - found
                    found |= readers
        return found

    def rings(self) -> frozenset[Address]:
        """The formulas that depend on themselves."""
        graph = {formula: set(self.sources(formula)) for formula in self._areas}
        sorter = TopologicalSorter(graph)
        try:
            sorter.prepare()
        except CycleError:
            pass  # the sorter still gives all that depends on no ring
        else:
            return frozenset()
        while ready := sorter.get_ready():
            sorter.done(*ready)
            for formula in ready:
                del graph[formula]
        return frozenset(formula for formula in graph if _leads_back(formula, graph))


def _leads_back(start: Address, graph: dict[Address, set[Address]]) -> bool:
    seen: set[Address] = set()
    pending = [start]
    while pending:
        ahead = graph.get(pending.pop(), set()) - seen
        if start in ahead:
            return True
        seen |= ahead
        pending += ahead
    return False
