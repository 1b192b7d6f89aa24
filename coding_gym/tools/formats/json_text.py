"""Reads JSON and plain values from untrusted text, in time linear in its length.

JSON must follow RFC 8259, in every format and in the arguments of OpenAI messages; nothing is
repaired. `FormatError` reports the position and the rule.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from coding_gym.tools.schemas import kinds_of

MAX_CALLS = 128
MAX_DEPTH = 64

_SPACE = re.compile(r"\s*")
_LITERALS = {"true": True, "false": False, "none": None, "null": None}
_NUM_QUOTED = 20  # characters on each side of the position in an error
_CUT_OFF = "; the reply seems cut off"
# The rules that models break, by the message of the decoder.
_RULES = {
    "Invalid control character at": "a line end or tab inside a string is written \\n or \\t",
    "Unterminated string starting at": f"this string is not closed{_CUT_OFF}",
    "Expecting property name enclosed in double quotes": "a key in double quotes is needed",
    "Expecting ',' delimiter": "a comma or the closing bracket is needed; a double quote inside a "
    'string is written \\"',
    "Expecting value": "a JSON value is needed; strings are written in double quotes",
}


class FormatError(ValueError):
    """A format error in the text, which only this package raises and catches.

    Attributes:
        tool_format: The format, if a mark identifies it.
    """

    tool_format = ""

    @classmethod
    def at(cls, rule: str, text: str, position: int) -> "FormatError":
        """Returns the error for a rule that ``text`` violates at ``position``."""
        excerpt = text[max(0, position - _NUM_QUOTED) : position + _NUM_QUOTED]
        is_end = not text[position : position + _NUM_QUOTED].strip() and _CUT_OFF not in rule
        return cls(f"{rule}, at {excerpt!r} (character {position}){_CUT_OFF if is_end else ''}")


def bad_escape(text: str, position: int, language: str) -> FormatError:
    r"""Returns the error for an escape that does not exist in the language, such as ``\d``."""
    pair = text[position : position + 2]
    rule = f"{pair} is not a {language} escape; a backslash is written \\\\, so write \\{pair}"
    return FormatError.at(rule, text, position)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns pairs as an object; a repeated key is an error, because it hides a value."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise FormatError(f"the key {repeated[:40]!r} occurs twice")
    return fields


_decoder = json.JSONDecoder(object_pairs_hook=_unique)


def decode(text: str, start: int = 0) -> tuple[Any, int]:
    """Returns the JSON value at ``start``, after optional white space, and its end.

    Raises:
        FormatError: The text has no such value, or the value cannot be serialized again.
    """
    blank = _SPACE.match(text, start)
    try:
        value, end = _decoder.raw_decode(text, blank.end() if blank else start)
    except json.JSONDecodeError as error:
        if error.msg.startswith("Invalid \\"):
            raise bad_escape(text, error.pos, "JSON") from None
        raise FormatError.at(_RULES.get(error.msg, error.msg), text, error.pos) from None
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:  # a number with too many digits
        raise FormatError(str(error)) from None
    return checked(value), end


def checked(value: Any) -> Any:
    """Returns a value if JSON and UTF-8 can represent it (finite numbers, no surrogates).

    Raises:
        FormatError: JSON or UTF-8 cannot represent it, or it is nested too deeply.
    """
    try:
        to_json(value).encode()
    except UnicodeEncodeError as error:
        raise FormatError(
            f"\\u{ord(error.object[error.start]):04x} is half of a surrogate pair"
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(str(error)) from None
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for group in level
            for item in (group.values() if isinstance(group, dict) else group)
            if isinstance(item, dict | list)
        ]
        if not level:
            return value
    raise FormatError(f"it is nested more than {MAX_DEPTH} levels deep")


def decode_whole(text: str) -> Any:
    """Parses ``text`` as exactly one JSON value; surrounding white space is allowed."""
    value, end = decode(text)
    if text[end:].strip():
        raise FormatError.at("other text follows the JSON", text, end)
    return value


def to_json(value: Any) -> str:
    """Returns the JSON of a value, with non-ASCII characters unescaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def typed(text: str, schema: Mapping[str, Any]) -> Any:
    """Converts the text of an argument to the type in its schema; an empty schema has none.

    If strings are allowed or there is no type, the text is not changed. Otherwise it is parsed
    as JSON (or Python's True, False and None); if that fails, the text is returned and the tool
    refuses the wrong type.
    """
    kinds = kinds_of(schema)
    if not kinds or "string" in kinds:
        return text
    try:
        value = _LITERALS.get(text.strip().lower(), ...)
        return decode_whole(text) if value is ... else value
    except FormatError:
        return text
