"""What can be wrong with a query."""


class WinnowError(ValueError):
    """The root of all errors."""


class QuerySyntaxError(WinnowError):
    """A query cannot be read."""


class ParameterError(WinnowError):
    """A parameter of a query is not given, or one is given that the query does not have."""
