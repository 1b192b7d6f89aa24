"""Formulas into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cellar.errors import FormulaError

_TOKEN = re.compile(
    r"(?P<blank>\s+)"
    r'|(?P<text>"(?:[^"]|"")*")'
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<function>[A-Za-z][A-Za-z0-9]*(?=\s*\())"
    r"|(?P<reference>\$?[A-Za-z]{1,3}\$?[1-9][0-9]{0,5}(?![A-Za-z0-9]))"
    r"|(?P<fault>#REF!)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]*)"
    r"|(?P<symbol><=|>=|<>|[-+*/^&%=<>(),:])"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a formula and where it starts; its kind is a group of the pattern, or ``end``."""

    kind: str
    text: str
    start: int


def tokenize(formula: str) -> list[Token]:
    """The tokens behind the ``=`` of a formula, blanks left out, and an ``end`` token.

    Raises:
        FormulaError: at a character that starts no token.
    """
    tokens: list[Token] = []
    position = 1
    while position < len(formula):
        match = _TOKEN.match(formula, position)
        if match is None or match.lastgroup is None:
            raise FormulaError(f"{formula}: unexpected {formula[position]!r}")
        if match.lastgroup != "blank":
            tokens.append(Token(match.lastgroup, match[0], position))
        position = match.end()
    return [*tokens, Token("end", "the end", position)]
