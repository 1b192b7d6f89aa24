"""Queries into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from winnow.errors import QuerySyntaxError

_WORDS = frozenset(
    {"select", "as", "where", "and", "or", "not", "in", "between", "like", "has", "is", "missing"}
    | {"order", "by", "asc", "desc", "limit", "offset", "true", "false"}
)
_TOKEN = re.compile(
    r"(?P<blank>\s+)"
    r"|(?P<text>'(?:[^']|'')*')"
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?)"
    r"|:(?P<parameter>[^\W\d]\w*)"
    r"|(?P<path>[^\W\d]\w*(?:\.\w+)*)"
    r"|(?P<symbol><=|>=|!=|[=<>(),])"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A ``text``, ``number``, ``parameter``, ``path``, ``symbol`` or ``word``, or the ``end``."""

    kind: str
    text: str


def tokenize(query: str) -> list[Token]:
    """The tokens of a query, with an ``end`` token behind them.

    Raises:
        QuerySyntaxError: at a character that starts no token.
    """
    tokens: list[Token] = []
    position = 0
    while position < len(query):
        match = _TOKEN.match(query, position)
        if match is None or match.lastgroup is None:
            raise QuerySyntaxError(f"unexpected {query[position]!r} at position {position}")
        kind, text = match.lastgroup, match[match.lastgroup]
        if kind == "path" and text.lower() in _WORDS:
            kind, text = "word", text.lower()
        if kind != "blank":
            tokens.append(Token(kind, text))
        position = match.end()
    return [*tokens, Token("end", "the end")]
