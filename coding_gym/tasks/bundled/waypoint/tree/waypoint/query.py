"""Query strings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote_plus

from waypoint.percent import decode


class Query:
    """The fields of a query string in their order; a name may occur more than once."""

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._fields = tuple(fields)

    @classmethod
    def parse(cls, text: str) -> Query:
        """Read ``a=1&b=2``; a field without ``=`` has an empty value, empty fields are dropped."""
        pairs = (field.partition("=") for field in text.split("&") if field)
        return cls((_decode_plus(name), _decode_plus(value)) for name, _, value in pairs)

    def get(self, name: str, default: str | None = None) -> str | None:
        """The last value of ``name``."""
        values = self.all(name)
        return values[-1] if values else default

    def all(self, name: str) -> list[str]:
        """Every value of ``name``, in order."""
        return [value for key, value in self._fields if key == name]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._fields)

    def __repr__(self) -> str:
        return f"Query({list(self._fields)!r})"

    def __str__(self) -> str:
        return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in self._fields)


def build_query(values: Mapping[str, object]) -> Query:
    """A query from a mapping; lists and tuples become repeated fields, ``None`` is left out."""
    fields = []
    for name, value in values.items():
        several = value if isinstance(value, list | tuple) else [value]
        fields += [(name, str(item)) for item in several if item is not None]
    return Query(fields)


def _decode_plus(text: str) -> str:
    return decode(text.replace("+", " "))
