"""Everything that can go wrong, under one root."""


class RoutingError(Exception):
    """The root of all errors that this package raises on purpose."""


class BadPattern(RoutingError, ValueError):
    """A pattern cannot be read."""


class BadTarget(RoutingError, ValueError):
    """A request target is not a path in percent-encoded UTF-8."""


class NoMatch(RoutingError, LookupError):
    """No pattern matches a path."""


class NoReverse(RoutingError, LookupError):
    """A URL cannot be built: the name is unknown or the parameters do not fit."""
