"""JSON that a model wrote almost right: mended where what was meant is clear."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from coding_gym.tools.formats.parsed import FormatError
from coding_gym.tools.formats.reading import Reader, decode_value, read_loosely

MAX_REPAIRED_CHARS = 1 << 13  # json_repair takes time quadratic in the length: 0.2 s for these

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TOKEN = re.compile(rf"{_STRING.pattern}|[{{}}\[\]]", re.DOTALL)
_CLOSERS = {"{": "}", "[": "]"}
_MAX_INNER_STRINGS = 100


def lenient_reader(tool_names: Collection[str], num_chars: int) -> Reader:
    """Returns a reader that forgives: raw line ends in strings, then what can be mended.

    First brackets are closed that are open at the end, and left out that close nothing; then
    json_repair tries. What comes out counts only where every value is a call of one of
    ``tool_names``, and no string was lost or changed. Nothing is tried on text that breaks off
    inside a value (half a command must not run as if it were whole), nor on replies of more than
    `MAX_REPAIRED_CHARS`, ``num_chars`` being this reply's.
    """

    def read(text: str) -> list[Any]:
        try:
            return read_loosely(text)
        except FormatError as error:
            if not tool_names or num_chars > MAX_REPAIRED_CHARS:
                raise
            if _breaks_off(text) or not _is_mendable(error):
                raise
            for mend in (_balanced, _repaired):
                value = mend(text)
                if _names_tools(value, tool_names) and _keeps_strings(text, value):
                    return [value]
            raise

    return read


def _is_mendable(error: FormatError) -> bool:
    """Whether syntax is what is wrong, and not a value, nor an end inside a string."""
    cause = error.__cause__
    return isinstance(cause, json.JSONDecodeError) and not cause.msg.startswith("Unterminated")


def _breaks_off(text: str) -> bool:
    """Whether a text ends inside or in front of a value, so that closing it would invent one."""
    text = text.rstrip()
    start, end = 0, 0
    for string in _STRING.finditer(text):
        start, end = string.span()
    is_in_string = '"' in text[end:]
    is_in_list = "]" in _open_brackets(text)[0][1:]
    is_behind_value = end == len(text) and text[:start].rstrip().endswith(":")
    return is_in_string or is_in_list or not (is_behind_value or text.endswith(("}", "]")))


def _open_brackets(text: str) -> tuple[list[str], int]:
    """Returns what closes the brackets that are open at the end, and where that end is.

    The end is in front of brackets that close nothing. Where they do not match, nothing is open.
    """
    closers: list[str] = []
    for token in _TOKEN.finditer(text):
        if token[0] in _CLOSERS:
            closers.append(_CLOSERS[token[0]])
        elif token[0] in ("}", "]"):
            if not closers or closers.pop() != token[0]:
                return [], len(text)
            if not closers and not text[token.end() :].strip(" \t\r\n]}"):
                return [], token.end()
    return closers, len(text)


def _balanced(text: str) -> Any:
    """Returns the value of a text whose brackets are closed, or None where that does not help."""
    closers, end = _open_brackets(text)
    try:
        values = read_loosely(text[:end] + "".join(reversed(closers)))
    except FormatError:
        return None
    return values[0] if len(values) == 1 else values


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
        isinstance(item, dict)
        and str(item.get("name")) in tool_names
        and ("arguments" in item or "parameters" in item)
        for item in items
    )


def _keeps_strings(text: str, value: Any) -> bool:
    """Whether nothing that was said is missing: json_repair strips some strings, and drops objects.

    A string of the text is one of the value, or a part of one, where the quotes were wrong.
    """
    if text.count("name") != json.dumps(value).count("name"):
        return False
    kept = set(_strings(value))
    whole = "\0".join(kept)
    inner = {string for string in map(_content, _STRING.findall(text)) if string not in kept}
    return len(inner) <= _MAX_INNER_STRINGS and all(string in whole for string in inner)


def _content(string: str) -> str:
    try:
        return str(read_loosely(string)[0])
    except FormatError:
        return string[1:-1]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
