"""Checks of callers' arguments, with errors that name the argument, its value and the remedy.

NumPy numbers are accepted. A bool is not accepted as a number.
"""

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, TypeGuard

from coding_gym.errors import InvalidArgumentError, UnknownNameError

_MAX_LISTED = 30  # names in an error message
MAX_SECONDS = 1e9  # about 32 years; some system calls reject much larger values


def is_number(value: object) -> TypeGuard[float]:
    """Returns whether a value is a real number, infinity and NaN included; a bool is not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard[int]:
    """Returns whether a value is an integer; a bool is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def at_least(bound: int, name: str, value: Any) -> int:
    """Returns ``value`` if it is an integer of at least ``bound``.

    Raises:
        InvalidArgumentError: The value is not an integer, or below ``bound``.
    """
    if not is_integer(value) or value < bound:
        raise InvalidArgumentError(f"{name} must be an integer of at least {bound}, got {value!r}")
    return int(value)


def within(bounds: range, name: str, value: Any) -> int:
    """Returns ``value`` if it is an integer in ``bounds``.

    Raises:
        InvalidArgumentError: The value is not an integer, or outside this range.
    """
    # Not `in`, which compares an integer of NumPy with all numbers of a range.
    if not is_integer(value) or not bounds.start <= value < bounds.stop:
        raise InvalidArgumentError(
            f"{name} must be an integer from {bounds.start} to {bounds.stop - 1}, got {value!r}"
        )
    return int(value)


def at_least_one(name: str, value: Any) -> int:
    """Returns ``value`` if it is an integer of at least 1; see `at_least`."""
    return at_least(1, name, value)


def positive_seconds(name: str, value: Any) -> float:
    """Returns ``value`` if it is a number of seconds above 0 and at most `MAX_SECONDS`.

    Raises:
        InvalidArgumentError: The value is not a number, or outside this range.
    """
    if not is_number(value) or not 0 < value <= MAX_SECONDS:
        raise InvalidArgumentError(
            f"{name} must be a number of seconds above 0 and at most {MAX_SECONDS:g}, got {value!r}"
        )
    return float(value)


def unknown_name(kind: str, name: Any, known_names: Iterable[str]) -> UnknownNameError:
    """Returns the error for an unknown name, with the closest known name or a list."""
    return UnknownNameError(f"no {kind} is called {name!r}; {hint(name, sorted(known_names))}")


def hint(name: Any, known_names: Iterable[str]) -> str:
    """Returns the end of an error message: the closest known name, or a list of known names.

    The comparison ignores case and underscores.
    """
    names_by_key = {_key(known_name): known_name for known_name in known_names}
    matches = difflib.get_close_matches(_key(str(name)), names_by_key, n=1)
    if matches:
        return f"did you mean {names_by_key[matches[0]]!r}?"
    return f"known names: {', '.join([*names_by_key.values()][:_MAX_LISTED])}"


def _key(name: str) -> str:
    return name.replace("_", "").lower()


def check_arguments(owner: str, names: Iterable[str], keywords: Iterable[str]) -> None:
    """Checks that an owner has arguments of these names; an error suggests the closest name.

    Args:
        owner: The function or object that takes the arguments, for the message.
        names: The names to check.
        keywords: The names of the arguments that the owner takes.

    Raises:
        InvalidArgumentError: A name is not among ``keywords``.
    """
    keywords = list(keywords)
    for name in names:
        if name not in keywords:
            raise InvalidArgumentError(f"{owner} has no argument {name!r}; {hint(name, keywords)}")
