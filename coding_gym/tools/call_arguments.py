"""Reads the arguments of a call by type; a missing or wrong argument raises a `Refusal`.

Text is converted to the type of the argument, because values in XML formats are text: ``"12"`` is
an integer and ``"true"`` a boolean. Null counts as missing.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from coding_gym.calls import ToolCall
from coding_gym.tools.toolset import Refusal, quoted

_T = TypeVar("_T")
_NUMBER = re.compile(r"[+-]?\d{1,18}")
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def has_argument(call: ToolCall, name: str) -> bool:
    """Returns whether a call has an argument that is not null."""
    return call.arguments.get(name) is not None


def text(call: ToolCall, name: str, default: str | None = None) -> str:
    """Returns an argument that is a string of Unicode text; without a default it is required."""
    value = _read(call, name, default, "a string", lambda v: v if isinstance(v, str) else None)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Refusal(f"`{name}` contains a lone surrogate, which is not Unicode text") from error
    return value


def integer_argument(call: ToolCall, name: str, default: int | None = None) -> int:
    """Returns an integer argument; without a default it is required."""
    return _read(call, name, default, "a whole number", as_integer)


def boolean_argument(call: ToolCall, name: str, *, default: bool) -> bool:
    """Returns a boolean argument."""
    return _read(call, name, default, "true or false", _as_truth)


def seconds(call: ToolCall, name: str, default: float, *, least: float, most: float) -> float:
    """Returns an argument in seconds, clipped to bounds."""
    return min(max(_read(call, name, default, "a number of seconds", _as_number), least), most)


def _read(
    call: ToolCall, name: str, default: _T | None, form: str, convert: Callable[[Any], _T | None]
) -> _T:
    """Returns an argument's value; ``convert`` returns None for a value of another type."""
    value = call.arguments.get(name)
    if value is None:
        if default is None:
            names = ", ".join(quoted(key) for key in list(call.arguments)[:10]) or "nothing"
            raise Refusal(f"{call.name} needs the argument `{name}`, got {names}")
        return default
    converted = convert(value)
    if converted is None:
        raise _wrong(name, form, value)
    return converted


def _as_truth(value: Any) -> bool | None:
    return _TRUTHS.get(str(value).strip().strip("\"'").lower())


def _as_number(value: Any) -> float | None:
    try:
        number = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def line_range(call: ToolCall, name: str) -> tuple[int, int] | None:
    """Returns an argument that is a list of two integers, or None if it is missing."""
    value: Any = call.arguments.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise _wrong(name, "a list of two line numbers", value) from error
    if value is None or value == []:
        return None
    numbers = [as_integer(item) for item in value] if isinstance(value, list) else []
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        raise _wrong(name, "a list of two line numbers", value)
    return numbers[0], numbers[1]


def one_of(call: ToolCall, name: str, choices: Sequence[str]) -> str:
    """Returns an argument that is one of the choices."""
    value = text(call, name).strip()
    if value not in choices:
        raise Refusal(f"`{name}` must be one of {', '.join(choices)}, got {quoted(value)}")
    return value


def as_integer(value: Any) -> int | None:
    """Converts a value to an integer; None if it is not one.

    >>> as_integer("12"), as_integer(3.0), as_integer(True), as_integer("3.5")
    (12, 3, None, None)
    """
    if isinstance(value, str):
        plain = value.strip().strip("\"'")
        return int(plain) if _NUMBER.fullmatch(plain) else None
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole and not isinstance(value, bool) and abs(value) < 1 << 62 else None


def _wrong(name: str, form: str, value: Any) -> Refusal:
    return Refusal(f"`{name}` must be {form}, got {quoted(value)}")
