"""Checks of callers' arguments, with errors that name the argument, its value and the way out.

NumPy's numbers are welcome; a bool is a number too, but never meant as one.
"""

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from coding_gym.errors import InvalidArgumentError, UnknownNameError

MAX_SECONDS = 1e9  # about 32 years; some clocks cannot wait for much more


def at_least_one(name: str, value: Any) -> int:
    """Returns ``value`` if it is an integer of at least 1.

    Raises:
        InvalidArgumentError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InvalidArgumentError(f"{name} must be an integer of at least 1, got {value!r}")
    return int(value)


def true_or_false(name: str, value: Any) -> bool:
    """Returns ``value`` if it is a bool; the text "false" would count as true otherwise.

    Raises:
        InvalidArgumentError: It is not.
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidArgumentError(f"{name} must be true or false, got {value!r}")
    return bool(value)


def positive_seconds(name: str, value: Any) -> float:
    """Returns ``value`` if it is a number of seconds above 0 that a clock can wait for.

    Raises:
        InvalidArgumentError: It is not.
    """
    is_number = not isinstance(value, bool) and isinstance(value, Real)
    if not is_number or not 0 < value <= MAX_SECONDS:
        raise InvalidArgumentError(
            f"{name} must be a number of seconds above 0 and at most {MAX_SECONDS:g}, got {value!r}"
        )
    return float(value)


def unknown_name(kind: str, name: Any, known: Iterable[str]) -> UnknownNameError:
    """Returns the error for a name that nothing has, with what is near it and what there is."""
    names = sorted(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    near = f"; did you mean {close[0]!r}?" if close else ";"
    return UnknownNameError(f"no {kind} is called {name!r}{near} there are {', '.join(names)}")
