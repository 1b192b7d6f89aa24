"""Queries, and how they are run."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from winnow.comparing import sort_key
from winnow.errors import ParameterError
from winnow.operands import Operand, Row
from winnow.parser import parse

Record = Mapping[str, Any]


class Query:
    """A query that can be run on any records, as often as needed.

    Args:
        text: the query.

    Raises:
        QuerySyntaxError: if it cannot be read.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._plan = parse(text)

    def __repr__(self) -> str:
        return f"Query({self.text!r})"

    def run(self, records: Iterable[Record], /, **parameters: Any) -> Iterator[Record]:
        """Gives what the query finds, while it is asked for.

        Raises:
            ParameterError: at once, if these are not the parameters of the query.
        """
        wanted = self._plan.parameters
        if wrong := sorted(wanted ^ parameters.keys()):
            said = "is not given" if wrong[0] in wanted else "is not in the query"
            raise ParameterError(f"the parameter {wrong[0]!r} {said}")
        return self._found(Row(record, parameters) for record in records)

    def _found(self, rows: Iterator[Row]) -> Iterator[Record]:
        plan = self._plan
        if plan.condition is not None:
            condition = plan.condition
            rows = (row for row in rows if condition(row))
        if plan.order:
            rows = iter(_sorted(rows, plan.order))
        end = None if plan.limit is None else plan.offset + plan.limit
        for row in islice(rows, plan.offset, end):
            yield {name: of(row) for name, of in plan.columns} if plan.columns else row.record


def select(text: str, records: Iterable[Record], /, **parameters: Any) -> Iterator[Record]:
    """Runs ``"select " + text``, or ``text`` as it is if it starts with a word of the language.

    Raises:
        QuerySyntaxError: if it cannot be read.
        ParameterError: if these are not the parameters of the query.
    """
    return _query(text).run(records, **parameters)


@functools.lru_cache(maxsize=256)
def _query(text: str) -> Query:
    first = text.split(maxsplit=1)[:1]
    is_whole = not first or first[0].lower() in ("select", "where", "order", "limit", "offset")
    return Query(text if is_whole else f"select {text}")


def _sorted(rows: Iterable[Row], order: list[tuple[Operand, bool]]) -> list[Row]:
    """Sorts by the last key first; what is equal keeps its order, and what is missing is last."""
    found = list(rows)
    for operand, is_downwards in reversed(order):
        values = [(operand(row), row) for row in found]
        there = [(sort_key(value), row) for value, row in values if value is not None]
        there.sort(key=lambda pair: pair[0], reverse=is_downwards)
        found = [row for _, row in there] + [row for value, row in values if value is None]
    return found
