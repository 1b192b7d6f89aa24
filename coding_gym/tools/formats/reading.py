"""JSON from untrusted text.

Whatever the text, reading ends in time linear in its length or raises `FormatError`: nesting and
numbers are bounded.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any

from coding_gym.text.unicode import well_formed
from coding_gym.tools.formats.parsed import FormatError

MAX_CALLS = 128
MAX_DEPTH = 64
MAX_DIGITS = 1000

Reader = Callable[[str], list[Any]]

_SPACE = re.compile(r"\s*")


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise FormatError(f"a number of {len(digits)} digits")
    return int(digits)


def _parse_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise FormatError(f"the number {digits[:40]} is out of range")
    return value


def _refuse_constant(name: str) -> Any:
    raise FormatError(f"{name} is not JSON")


def _decoder(*, strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        parse_int=_parse_int,
        parse_float=_parse_float,
        parse_constant=_refuse_constant,
        strict=strict,
    )


_STRICT = _decoder(strict=True)
_LOOSE = _decoder(strict=False)  # lets line ends stand inside strings, as models write them


def decode_value(text: str, start: int = 0) -> tuple[Any, int]:
    """Returns the JSON value that begins at ``start``, and where it ends.

    Raises:
        FormatError: There is none, or it is not one that can be written again.
    """
    return _decode(_STRICT, text, start)


def decode_loosely(text: str, start: int = 0) -> tuple[Any, int]:
    """Returns what `decode_value` does, with raw line ends let stand inside strings.

    Raises:
        FormatError: There is no value, or it is not one that can be written again.
    """
    return _decode(_LOOSE, text, start)


def _decode(decoder: json.JSONDecoder, text: str, start: int) -> tuple[Any, int]:
    try:
        value, end = decoder.raw_decode(text, start)
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(str(error)) from error
    except RecursionError as error:
        raise FormatError("it is nested too deeply") from error
    return _checked(value, 0), end


def _checked(value: Any, depth: int) -> Any:
    """Returns a value that JSON and UTF-8 can hold: bounded depth, no lone surrogates."""
    if depth > MAX_DEPTH:
        raise FormatError(f"it is nested more than {MAX_DEPTH} deep")
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [_checked(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {well_formed(key): _checked(item, depth + 1) for key, item in value.items()}
    return value


def skip_space(text: str, start: int) -> int:
    """Returns where the blank space at ``start`` ends."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


def decode_whole(text: str) -> Any:
    """Returns the one JSON value that ``text`` is.

    Raises:
        FormatError: It is not one.
    """
    value, end = decode_value(text)
    if end != len(text):
        raise FormatError(str(json.JSONDecodeError("Extra data", text, end)))
    return value


def _decode_all(decoder: json.JSONDecoder, text: str) -> list[Any]:
    values: list[Any] = []
    end = skip_space(text, 0)
    while end < len(text):
        if len(values) == MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        value, end = _decode(decoder, text, end)
        values.append(value)
        end = skip_space(text, end)
    return values


def read_strictly(text: str) -> list[Any]:
    """Returns the JSON values of ``text``, one after another with blank space between them.

    Raises:
        FormatError: Anything else is in it.
    """
    return _decode_all(_STRICT, text)


def read_loosely(text: str) -> list[Any]:
    """Returns what `read_strictly` does, with raw line ends let stand inside strings.

    Raises:
        FormatError: Anything else is in it.
    """
    return _decode_all(_LOOSE, text)
