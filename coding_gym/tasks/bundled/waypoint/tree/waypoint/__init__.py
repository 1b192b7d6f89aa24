"""A URL router without a framework: URLs to endpoints, and back."""

from waypoint.errors import BadPattern, BadTarget, NoMatch, NoReverse, RoutingError
from waypoint.query import Query
from waypoint.router import Match, Router

__all__ = [
    "BadPattern",
    "BadTarget",
    "Match",
    "NoMatch",
    "NoReverse",
    "Query",
    "Router",
    "RoutingError",
]
