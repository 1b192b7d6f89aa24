"""A spreadsheet engine: formulas in, values out."""

from cellar.errors import AddressError, CellarError, Fault, FormulaError
from cellar.sheet import Sheet

__all__ = ["AddressError", "CellarError", "Fault", "FormulaError", "Sheet"]
