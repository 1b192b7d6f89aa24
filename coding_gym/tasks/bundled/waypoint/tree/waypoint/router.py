"""Routers: tables of patterns that may hold other routers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from waypoint.converters import Converter, default_converters
from waypoint.errors import BadPattern, NoMatch, NoReverse
from waypoint.pattern import Capture, Pattern
from waypoint.percent import split_path
from waypoint.query import Query, build_query


@dataclass(frozen=True)
class Route:
    """One line of a router's table; the name includes the namespaces around it."""

    pattern: Pattern
    endpoint: Any
    name: str | None


@dataclass(frozen=True)
class Match:
    """What a request target leads to."""

    endpoint: Any
    name: str | None
    params: dict[str, Any]
    query: Query


@dataclass(frozen=True)
class _Mount:
    prefix: Pattern
    child: Router
    namespace: str | None


class Router:
    """Maps paths to endpoints, and names to paths.

    ``converters`` are known to this router's own patterns in addition to the built-in ones.
    """

    def __init__(self, *, converters: Mapping[str, Converter] | None = None) -> None:
        self._converters = {**default_converters(), **(converters or {})}
        self._entries: list[Route | _Mount] = []
        self._parents: list[Router] = []
        self._table: tuple[Route, ...] | None = None
        self._names: dict[str, Route] | None = None

    def add(self, pattern: str, endpoint: Any, *, name: str | None = None) -> None:
        """Register ``endpoint`` for a pattern; raises ``BadPattern`` if it cannot be read."""
        self._entries.append(Route(Pattern.parse(pattern, self._converters), endpoint, name))
        self._forget()

    def mount(self, prefix: str, child: Router, *, namespace: str | None = None) -> None:
        """Put the routes of ``child`` below a literal prefix such as ``/blog``."""
        parsed = Pattern.parse(prefix.rstrip("/"), {}) if prefix.rstrip("/") else Pattern(())
        if any(isinstance(segment, Capture) for segment in parsed.segments):
            raise BadPattern(f"a prefix takes no parameters, unlike {prefix!r}")
        if child._holds(self):
            raise ValueError("a router cannot be mounted inside itself")
        self._entries.append(_Mount(parsed, child, namespace))
        child._parents.append(self)
        self._forget()

    def resolve(self, target: str) -> Match:
        """What a request target (path, maybe with a query) leads to, or ``NoMatch``."""
        path, _, query = target.partition("#")[0].partition("?")
        segments = split_path(path)
        for route in self.table():
            params = route.pattern.match(segments)
            if params is not None:
                return Match(route.endpoint, route.name, params, Query.parse(query))
        raise NoMatch(f"nothing matches {path!r}")

    def reverse(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, object] | None = None,
    ) -> str:
        """The URL of the route called ``name``, or ``NoReverse``."""
        if self._names is None:
            routes = reversed(self.table())
            self._names = {route.name: route for route in routes if route.name is not None}
        route = self._names.get(name)
        if route is None:
            raise NoReverse(f"no route is called {name!r}")
        path = route.pattern.build(params or {})
        fields = build_query(query or {})
        return f"{path}?{fields}" if fields else path

    def table(self) -> tuple[Route, ...]:
        """Every route, mounted ones included, in the order in which they are tried."""
        if self._table is None:
            self._table = tuple(sorted(self._routes(), key=lambda route: route.pattern.rank))
        return self._table

    def _routes(self) -> list[Route]:
        routes: list[Route] = []
        for entry in self._entries:
            if isinstance(entry, Route):
                routes.append(entry)
                continue
            for route in entry.child._routes():
                name = route.name
                if name is not None and entry.namespace is not None:
                    name = f"{entry.namespace}:{name}"
                routes.append(Route(route.pattern.under(entry.prefix), route.endpoint, name))
        return routes

    def _holds(self, other: Router) -> bool:
        mounts = (entry for entry in self._entries if isinstance(entry, _Mount))
        return self is other or any(mount.child._holds(other) for mount in mounts)

    def _forget(self) -> None:
        """Drop what was derived from the routes, here and wherever this router is mounted."""
        self._table = self._names = None
        for parent in self._parents:
            parent._forget()
