"""JSON from untrusted text: strict first, repaired only where that gives a known tool.

Whatever the text, reading ends in time linear in its length or raises `FormatError`: nesting,
numbers and the length of what is repaired are bounded.
"""

import json
import math
import re
from collections.abc import Callable, Collection
from typing import Any

from coding_gym.text.unicode import well_formed
from coding_gym.tools.formats.parsed import FormatError

MAX_CALLS = 128
MAX_DEPTH = 64
MAX_DIGITS = 1000
MAX_REPAIRED_CHARS = 1 << 16

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


def lenient_reader(tool_names: Collection[str], num_chars: int) -> Reader:
    """Returns a reader that forgives: raw line ends in strings, then what json_repair mends.

    A repair counts only where every value that it gives is a call of one of ``tool_names``. None
    is tried on text that breaks off inside a string (half a command must not run as if it were
    whole), nor on replies of more than `MAX_REPAIRED_CHARS`, ``num_chars`` being this reply's.
    """

    def read(text: str) -> list[Any]:
        try:
            return _decode_all(_LOOSE, text)
        except FormatError as error:
            if not tool_names or num_chars > MAX_REPAIRED_CHARS or not _is_mendable(error):
                raise
            value = _repaired(text)
            if not _names_tools(value, tool_names):
                raise
            return [value]

    return read


def _is_mendable(error: FormatError) -> bool:
    """Whether syntax is what is wrong, and not a value, nor an end inside a string."""
    cause = error.__cause__
    return isinstance(cause, json.JSONDecodeError) and not cause.msg.startswith("Unterminated")


def _repaired(text: str) -> Any:
    import json_repair

    try:
        value = json_repair.loads(text, skip_json_loads=True)
        return decode_value(json.dumps(value))[0]
    except Exception:  # noqa: BLE001 - a heuristic on arbitrary text; failing means not repaired
        return None


def _names_tools(value: Any, tool_names: Collection[str]) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(
        isinstance(item, dict) and str(item.get("name")) in tool_names and "arguments" in item
        for item in items
    )
