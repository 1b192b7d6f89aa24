"""JSON, and plain values, from untrusted text.

Reading takes time linear in the text's length, and raises `FormatError` where the text is not what
is looked for: nesting and numbers are bounded. Broken JSON is repaired only where the outcome is
clear; see `repair`.
"""

import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from coding_gym.text.truncate import well_formed

MAX_CALLS = 128
MAX_DEPTH = 64
MAX_DIGITS = 1000

MAX_REPAIRED_CHARS = 1 << 13
MAX_REPAIR_WORK = 120_000
"""Bound on json_repair's input for one reply: characters times marks, under 0.1 s of work."""

# The time of json_repair grows with the length times the number of these; 16 stand for the rest.
_MARKS = "\"'“”{}[]()#/`"
_LEAST_MARKS = 16

_SPACE = re.compile(r"\s*")
# Possessive, and to the end where it is not closed, so that no character is scanned twice.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.?+)*+(?:"|(?P<unclosed>\Z))|[{}\[\]]', re.DOTALL)
_CLOSERS = {"{": "}", "[": "]"}
_LITERALS = {"true": True, "false": False, "none": None, "null": None}


class FormatError(ValueError):
    """Text is in a format but cannot be read. Never leaves this package's parsing."""


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


_STRICT, _LOOSE = (
    json.JSONDecoder(
        parse_int=_parse_int,
        parse_float=_parse_float,
        parse_constant=_refuse_constant,
        strict=strict,  # False allows raw line ends inside strings, as models write them
    ).scan_once  # type: ignore[attr-defined]  # raw_decode without its Python frame
    for strict in (True, False)
)


def decode(text: str, start: int = 0, *, loose: bool = False) -> tuple[Any, int]:
    """Returns the JSON value of well-formed text that begins at ``start``, and where it ends.

    Args:
        text: The text.
        start: Where the value begins.
        loose: Whether raw line ends may stand inside strings.

    Raises:
        FormatError: There is none, or it is not one that can be written again.
    """
    try:
        value, end = (_LOOSE if loose else _STRICT)(text, start)
    except StopIteration as stop:
        error = json.JSONDecodeError("Expecting value", text, stop.value)
        raise FormatError(str(error)) from error
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(str(error)) from error
    except RecursionError as error:
        raise FormatError("it is nested too deeply") from error
    # Only escapes make lone surrogates, and only brackets make depth.
    num_brackets = text.count("{", start, end) + text.count("[", start, end)
    if num_brackets > MAX_DEPTH or text.find("\\u", start, end) >= 0:
        value = checked(value, 0)
    return value, end


def checked(value: Any, depth: int) -> Any:
    """Returns a value that JSON and UTF-8 can hold: bounded depth, no lone surrogates."""
    if depth > MAX_DEPTH:
        raise FormatError(f"it is nested more than {MAX_DEPTH} deep")
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [checked(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {well_formed(key): checked(item, depth + 1) for key, item in value.items()}
    return value


def skip_space(text: str, start: int) -> int:
    """Returns where the blank space at ``start`` ends."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


def decode_whole(text: str) -> Any:
    """Returns the one JSON value that ``text`` is."""
    value, end = decode(text)
    if end != len(text):
        raise FormatError(str(json.JSONDecodeError("Extra data", text, end)))
    return value


def decode_all(text: str, separator: re.Pattern[str] = _SPACE, *, loose: bool = False) -> list[Any]:
    """Returns the JSON values of ``text``, with ``separator`` between them and nothing else."""
    values: list[Any] = []
    end = len(text) - len(text.lstrip())
    while end < len(text):
        if len(values) == MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        value, end = decode(text, end, loose=loose)
        values.append(value)
        if between := separator.match(text, end):
            end = between.end()
    return values


def to_json(value: Any) -> str:
    """Returns the JSON of a value, other alphabets as themselves."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def typed(text: str, schema: Mapping[str, Any], *, is_string: bool | None = None) -> Any:
    """Returns the value that ``text`` is of an argument with this schema, empty where unknown.

    Where strings are allowed, or nothing is known, it is the text itself, exactly. Otherwise it is
    the value that JSON (or Python, for True, False and None) reads in it, where that has the right
    type; else the text again, which the tool answers in its own words. ``is_string`` is what the
    tag of the argument says, which decides where the schema leaves both.
    """
    kinds = _kinds(schema)
    if is_string is not False and (not kinds or "string" in kinds):
        return text
    plain = text.strip()
    try:
        value = _LITERALS.get(plain.lower(), ...)
        value = decode_whole(plain) if value is ... else value
    except FormatError:
        return text
    is_null = value is None and not is_string  # counts as left out, whatever the type
    return value if not kinds or is_null or kinds & _KINDS_OF[type(value)] else text


def untyped(value: Any) -> str:
    """Returns a value as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else to_json(value)


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """Returns the JSON types that a schema allows; empty where it does not say."""
    kind = schema.get("type", ())
    kinds = {kind} if isinstance(kind, str) else set(kind)
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        kinds |= _kinds(choice)
    return kinds


_KINDS_OF: Mapping[type, set[str]] = {
    bool: {"boolean"},
    int: {"integer", "number"},
    float: {"number"},
    str: {"string"},
    list: {"array"},
    dict: {"object"},
    type(None): {"null"},
}


def is_text(schema: Mapping[str, Any]) -> bool:
    """Returns whether a schema allows strings and nothing else."""
    return _kinds(schema) == {"string"}


def is_cut_off(text: str) -> bool:
    """Returns whether a string or bracket of a JSON text is still open at its end."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token["unclosed"] is not None:
            return True
        depth += (token[0] in _CLOSERS) - (token[0] in "}]")
    return depth > 0


def repair_work(text: str) -> int:
    """Returns what repairing a text costs, in the unit of `MAX_REPAIR_WORK`."""
    return len(text) * (sum(map(text.count, _MARKS)) + _LEAST_MARKS)


def repair(text: str, tool_names: Collection[str]) -> Any:
    """Returns the calls that a broken JSON text was intended to be, or None.

    Brackets that are open at the end are closed; else json_repair tries. The outcome counts only
    where every value is a call of one of ``tool_names``, and no string was lost or changed. Text
    that breaks off inside or in front of a value is not repaired: half a command must not run.
    """
    text = text.rstrip()
    strings, missing = _outline(text)
    if missing is None:
        return None
    for attempt in (_closed, _json_repaired):
        value = attempt(text, missing)
        if _names_tools(value, tool_names) and _keeps_strings(text, strings, value):
            return value
    return None


def _outline(text: str) -> tuple[list[str], str | None]:
    """Returns a text's strings in their quotes, and the brackets that are missing at its end.

    The second is None where the text breaks off, so that closing it would invent a value; it is
    "" where brackets do not match.
    """
    strings: list[str] = []
    closers: list[str] = []
    last = (0, 0)
    matches = True
    for token in _TOKEN.finditer(text):
        if token["unclosed"] is not None:
            return [], None
        if token[0][0] == '"':
            strings.append(token[0])
            last = token.span()
        elif token[0] in _CLOSERS:
            closers.append(_CLOSERS[token[0]])
        elif not closers or closers.pop() != token[0]:
            matches, closers = False, []
    is_behind_value = last[1] == len(text) and text[: last[0]].rstrip().endswith(":")
    if (matches and "]" in closers[1:]) or not (is_behind_value or text.endswith(("}", "]"))):
        return [], None
    return strings, "".join(reversed(closers)) if matches else ""


def _closed(text: str, missing: str) -> Any:
    try:
        values = decode_all(text + missing, loose=True)
    except FormatError:
        return None
    return values[0] if len(values) == 1 else values


def _json_repaired(text: str, _missing: str) -> Any:
    import json_repair

    try:
        value = json_repair.loads(text, skip_json_loads=True)
        return decode_whole(json.dumps(value))
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
    """Whether nothing is missing: json_repair strips some strings, and drops objects.

    A string of the text is one of the value, or a part of one, where the quotes were wrong.
    """
    kept = to_json(value)
    raw = (string[1:-1].replace("\n", "\\n").replace("\t", "\\t") for string in strings)
    return text.count("name") == kept.count("name") and all(string in kept for string in raw)
