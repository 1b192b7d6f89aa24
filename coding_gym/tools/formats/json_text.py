"""Reads JSON and plain values from untrusted text, in time linear in its length.

JSON must follow RFC 8259, in every format and in the arguments of OpenAI messages; nothing is
repaired. `FormatError` reports the position and the rule.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from coding_gym.calls import TOO_DEEP, is_too_deep
from coding_gym.tools.schemas import kinds_of

MAX_CALLS = 128

_SPACE = re.compile(r"\s*")
_LITERALS = {"true": True, "false": False, "none": None, "null": None}
_NUM_QUOTED = 20  # characters on each side of the position in an error
_TRUNCATED = "; the reply seems truncated"
# Explanations of the decoder's messages for common mistakes of models.
_RULES = {
    "Invalid control character at": "a line end or tab inside a string is written \\n or \\t",
    "Unterminated string starting at": f"this string is not closed{_TRUNCATED}",
    "Expecting property name enclosed in double quotes": "a key in double quotes is needed",
    "Expecting ',' delimiter": "a comma or the closing bracket is needed; a double quote inside a "
    'string is written \\"',
    "Expecting value": "a JSON value is needed; strings are written in double quotes",
}


class FormatError(ValueError):
    """A format error in a reply; `ParsedAction.error` of `ReplyParser.read` reports the error.

    Attributes:
        tool_format: The name of the format that the mark selects, or "".
    """

    tool_format = ""

    @classmethod
    def at(cls, rule: str, text: str, position: int) -> "FormatError":
        """Returns the error for a rule that ``text`` violates at ``position``."""
        excerpt = text[max(0, position - _NUM_QUOTED) : position + _NUM_QUOTED]
        is_end = not text[position : position + _NUM_QUOTED].strip() and _TRUNCATED not in rule
        return cls(f"{rule}, at {excerpt!r} (character {position}){_TRUNCATED if is_end else ''}")


def bad_escape(text: str, position: int, language: str) -> FormatError:
    r"""Returns the error for an escape that does not exist in the language, such as ``\d``."""
    pair = text[position : position + 2]
    rule = f"{pair} is not a {language} escape; a backslash is written \\\\, so write \\{pair}"
    return FormatError.at(rule, text, position)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns pairs as an object; raises FormatError for a repeated key, which hides a value."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        repeated_key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise FormatError(f"the key {repeated_key[:40]!r} occurs twice")
    return fields


_decoder = json.JSONDecoder(object_pairs_hook=_unique)


def decode(text: str, start: int = 0) -> tuple[Any, int]:
    """Returns the JSON value at ``start``, after optional white space, and its end.

    Raises:
        FormatError: The text has no valid JSON there, or `checked` refuses the value.
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
    """Returns a value unchanged if JSON and UTF-8 can represent it.

    Raises:
        FormatError: The value has a lone surrogate or a number that is not finite, is not
            JSON-native, or is nested too deeply.
    """
    try:
        to_json(value).encode()
    except UnicodeEncodeError as error:
        raise FormatError(
            f"\\u{ord(error.object[error.start]):04x} is half of a surrogate pair"
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(str(error)) from None
    if is_too_deep(value):
        raise FormatError(TOO_DEEP)
    return value


def decode_whole(text: str) -> Any:
    """Parses ``text`` as exactly one JSON value; surrounding white space is allowed."""
    value, end = decode(text)
    if text[end:].strip():
        raise FormatError.at("other text follows the JSON", text, end)
    return value


def to_json(value: Any) -> str:
    """Returns the JSON text of a value, with non-ASCII characters unescaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def typed(text: str, schema: Mapping[str, Any]) -> Any:
    """Converts the text of an argument to the type in its schema.

    The text is returned unchanged if the schema allows strings or has no type. Otherwise the text
    is parsed as JSON, or as Python's True, False or None; invalid text is returned unchanged, and
    the tool then refuses the argument.
    """
    kinds = kinds_of(schema)
    if not kinds or "string" in kinds:
        return text
    literal = text.strip().lower()
    try:
        return _LITERALS[literal] if literal in _LITERALS else decode_whole(text)
    except FormatError:
        return text
