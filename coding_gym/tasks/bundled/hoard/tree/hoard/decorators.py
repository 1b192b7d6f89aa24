"""Caches around functions."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from hoard.calls import Spelling
from hoard.memory import MemoryCache

P = ParamSpec("P")
R = TypeVar("R")

KeyMaker = Callable[[tuple[Any, ...], dict[str, Any]], Hashable]

_MISSING = object()
_KEYWORDS = object()


class Cache(Protocol):
    """What :func:`cached` needs of a cache."""

    def get(self, key: Any, default: Any = None) -> Any: ...

    def set(self, key: Any, value: Any, ttl: float | None = None) -> None: ...

    def delete(self, key: Any) -> bool: ...


def argument_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable:
    """The arguments themselves; they must be hashable. The order of keywords does not matter."""
    if not kwargs:
        return args
    return (*args, _KEYWORDS, *sorted(kwargs.items()))


def text_key(prefix: str) -> KeyMaker:
    """A maker of keys such as ``prefix:[1, "a", {"flag": true}]``, as file stores need them.

    Arguments must be what JSON can hold.
    """

    def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        arguments = [*args, kwargs] if kwargs else [*args]
        return f"{prefix}:{json.dumps(arguments, sort_keys=True)}"

    return make


def cached(
    cache: Cache | None = None, *, ttl: float | None = None, key: KeyMaker = argument_key
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keeps the results of a function.

    Args:
        cache: where they go; by default each function gets a :class:`MemoryCache` of its own.
        ttl: seconds that a result lives, if not the cache's own time to live.
        key: makes a key of the arguments; see :func:`hoard.text_key` for caches on disk.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        store: Cache = MemoryCache() if cache is None else cache
        spelling = Spelling(function)

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            name = key(*spelling(args, kwargs))
            kept = store.get(name, _MISSING)
            if kept is not _MISSING:
                return cast("R", kept)
            result = function(*args, **kwargs)
            store.set(name, result, ttl)
            return result

        def forget(*args: P.args, **kwargs: P.kwargs) -> bool:
            """Forgets the result for these arguments."""
            return store.delete(key(*spelling(args, kwargs)))

        wrapper.cache = store  # type: ignore[attr-defined]
        wrapper.forget = forget  # type: ignore[attr-defined]
        return wrapper

    return decorate
