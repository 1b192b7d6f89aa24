"""Formulas for other cells."""

from __future__ import annotations

from cellar.address import Reference
from cellar.errors import Fault
from cellar.lexer import tokenize


def moved_formula(formula: str, columns: int, rows: int) -> str:
    """The formula as it reads in a cell that lies so many columns and rows further."""
    pieces: list[str] = []
    done = 0
    for token in tokenize(formula):
        if token.kind == "reference":
            pieces += formula[done : token.start], _moved(token.text, columns, rows)
            done = token.start + len(token.text)
    return "".join(pieces) + formula[done:]


def _moved(reference: str, columns: int, rows: int) -> str:
    return str(Reference.parse(reference).moved(columns, rows) or Fault.REFERENCE)
