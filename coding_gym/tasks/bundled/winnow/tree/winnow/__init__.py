"""A query language for lists of dictionaries."""

from winnow.errors import ParameterError, QuerySyntaxError, WinnowError
from winnow.query import Query, select

__all__ = ["ParameterError", "Query", "QuerySyntaxError", "WinnowError", "select"]
