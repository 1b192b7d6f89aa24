"""Failures of our own side, put in the place of what works."""

from collections.abc import Callable
from typing import Any


def raising(error: BaseException) -> Callable[..., Any]:
    """Returns a function that raises ``error``, whatever it is called with."""

    def fail(*_arguments: Any, **_options: Any) -> None:
        raise error

    return fail
