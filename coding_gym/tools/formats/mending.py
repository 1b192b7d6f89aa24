"""JSON that a model wrote almost right: mended where what was meant is clear."""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from coding_gym.tools.effort import Effort
from coding_gym.tools.formats.parsed import FormatError
from coding_gym.tools.formats.reading import Reader, decode_value, read_loosely

MAX_REPAIRED_CHARS = 1 << 13

MAX_REPAIR_WORK = 120_000
"""What json_repair may be given for one reply: characters times marks, under 0.1 s of work."""

# Its time grows with the length times the number of these; (16 stand for what it takes anyway).
_MARKS = "\"'“”{}[]()#/`"
_LEAST_MARKS = 16

# Possessive, and to the end where it is not closed, so that no place is looked at twice.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.?+)*+(?:"|(?P<unclosed>\Z))|[{}\[\]]', re.DOTALL)
_CLOSERS = {"{": "}", "[": "]"}
_MAX_INNER_STRINGS = 100


def lenient_reader(tool_names: Collection[str], num_chars: int) -> Reader:
    """Returns a reader that forgives: raw line ends in strings, then what can be mended.

    First brackets are closed that are open at the end, and left out that close nothing; then
    json_repair tries. What comes out counts only where every value is a call of one of
    ``tool_names``, and no string was lost or changed. Nothing is tried on text that breaks off
    inside a value (half a command must not run as if it were whole), nor on replies of more than
    `MAX_REPAIRED_CHARS`, ``num_chars`` being this reply's. All readings of a reply share one
    reader: what one of them had mended is not tried again, and all may cost `MAX_REPAIR_WORK`.
    """
    effort = Effort(MAX_REPAIR_WORK)
    mended: dict[str, Any] = {}

    def read(text: str) -> list[Any]:
        try:
            return read_loosely(text)
        except FormatError as error:
            if not tool_names or num_chars > MAX_REPAIRED_CHARS or not _is_mendable(error):
                raise
            text = text.rstrip()
            if text not in mended:
                mended[text] = _mended(text, tool_names, effort)
            if mended[text] is None:
                raise
            return [mended[text]]

    return read


def _is_mendable(error: FormatError) -> bool:
    """Whether syntax is what is wrong, and not a value, nor an end inside a string."""
    cause = error.__cause__
    return isinstance(cause, json.JSONDecodeError) and not cause.msg.startswith("Unterminated")


def _mended(text: str, tool_names: Collection[str], effort: Effort) -> Any:
    """Returns what a text without blank space at its end was meant to be, or None."""
    outline = _outlined(text)
    if outline is None:
        return None
    for mend in (partial(_balanced, text, outline), partial(_repaired, text, effort)):
        value = mend()
        if _names_tools(value, tool_names) and _keeps_strings(text, outline.strings, value):
            return value
    return None


@dataclass(frozen=True, slots=True)
class _Outline:
    """The strings and brackets of a text.

    Attributes:
        strings: In their quotes.
        end: Where it ends, in front of brackets that close nothing.
        missing: What closes the brackets that are open there; "" where they do not match.
    """

    strings: tuple[str, ...]
    end: int
    missing: str


def _outlined(text: str) -> _Outline | None:
    """Returns a text's outline, or None where it breaks off.

    It does where it ends inside or in front of a value, so that closing it would invent one.
    """
    strings: list[str] = []
    closers: list[str] = []
    end, rest = 0, len(text.rstrip(" \t\r\n]}"))
    last = (0, 0)
    for token in _TOKEN.finditer(text):
        if token["unclosed"] is not None:
            return None
        if token[0][0] == '"':
            strings.append(token[0])
            last = token.span()
        elif end:
            continue
        elif token[0] in _CLOSERS:
            closers.append(_CLOSERS[token[0]])
        elif not closers or closers.pop() != token[0]:
            closers, end = [], len(text)
        elif not closers and token.end() >= rest:
            end = token.end()
    is_behind_value = last[1] == len(text) and text[: last[0]].rstrip().endswith(":")
    if "]" in closers[1:] or not (is_behind_value or text.endswith(("}", "]"))):
        return None
    return _Outline(tuple(strings), end or len(text), "".join(reversed(closers)))


def _balanced(text: str, outline: _Outline) -> Any:
    """Returns the value of a text whose brackets are closed, or None where that does not help."""
    try:
        values = read_loosely(text[: outline.end] + outline.missing)
    except FormatError:
        return None
    return values[0] if len(values) == 1 else values


def _repaired(text: str, effort: Effort) -> Any:
    """Returns what json_repair makes of a text, or None where it fails or would take too long."""
    import json_repair

    num_marks = sum(map(text.count, _MARKS))
    if not effort.spend(len(text) * (num_marks + _LEAST_MARKS)):
        return None
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


def _keeps_strings(text: str, strings: Collection[str], value: Any) -> bool:
    """Whether nothing that was said is missing: json_repair strips some strings, and drops objects.

    A string of the text is one of the value, or a part of one, where the quotes were wrong.
    """
    if text.count("name") != json.dumps(value).count("name"):
        return False
    kept = set(_strings(value))
    whole = "\0".join(kept)
    inner = {string for string in map(_content, strings) if string not in kept}
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
