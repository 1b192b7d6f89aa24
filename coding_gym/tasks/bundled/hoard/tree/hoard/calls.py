"""One spelling for calls that mean the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Spelling:
    """Turns the arguments of a function's calls into the one spelling under which they are kept.

    Args:
        function: whose parameters count; for one that does not tell them, all stays as it is.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except ValueError:
            self._signature = None

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """What may be given by position is, as far as possible; defaults are left out."""
        if self._signature is None:
            return args, kwargs
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:
            return args, kwargs  # the function has to say what is wrong
        for parameter in reversed(list(self._signature.parameters.values())):
            given = bound.arguments.get(parameter.name, _NOTHING)
            if parameter.kind is parameter.VAR_POSITIONAL and given is not _NOTHING:
                break  # all parameters before these need to be there
            if _is_default(parameter, given):
                del bound.arguments[parameter.name]
            elif parameter.kind is parameter.POSITIONAL_ONLY and given is not _NOTHING:
                break
        return bound.args, bound.kwargs


_NOTHING = object()


def _is_default(parameter: inspect.Parameter, value: Any) -> bool:
    default = parameter.default
    return value is default or (type(value) is type(default) and bool(value == default))
