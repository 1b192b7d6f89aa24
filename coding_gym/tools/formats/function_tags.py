"""Calls in tags of their own: ``<function=NAME><parameter=KEY>value</parameter></function>``.

A value is what stands between its tags, less one line end behind the first and one before the last,
as vLLM's and SGLang's ``qwen3_coder`` parsers take it. OpenHands and SWE-agent strip all blank
space there; that would lose the indentation of the text that an edit looks for.
"""

import re
from collections.abc import Mapping
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Reading
from coding_gym.tools.formats.parsed import FormatError, ParsedAction
from coding_gym.tools.formats.reading import MAX_CALLS, skip_space
from coding_gym.tools.formats.typed_values import typed, untyped

FUNCTION = "<function="
_END = "</function>"
_END_OF_VALUE = "</parameter>"
_FUNCTION = re.compile(r"<function=([^<>\n]*)>")
_PARAMETER = re.compile(r"\s*<parameter=([^<>\n]*)>")
_CLOSING = re.compile(r"\s*</function>")
# A tag at the start of a line, which ends a value whose own closing tag was forgotten.
_NEXT_TAG = re.compile(
    r"</parameter>|\n[ \t]*<(parameter|function)=([^<>\n]*)>"
    r"|\n[ \t]*</function>(?=\s*(?:\Z|</?tool_call>|<function=))"
)


def read_functions(
    text: str, reading: Reading, opening: re.Pattern[str], closing: re.Pattern[str]
) -> ParsedAction | None:
    """Reads all calls, or returns None where there is none.

    Args:
        text: The reply.
        reading: How to read it.
        opening: What stands before the tag of a function, which it only looks ahead to.
        closing: What stands behind its closing tag.

    Raises:
        FormatError: One cannot be read.
    """
    calls: list[ToolCall] = []
    prose: list[str] = []
    position = 0
    while found := opening.search(text, position):
        if len(calls) == MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        prose.append(text[position : found.start()])
        call, end = _read_function(text, found.end(), reading)
        calls.append(call)
        closed = closing.match(text, end)
        if closed is None:
            raise FormatError(f"a closing tag is missing behind {_END}")
        position = closed.end()
    prose.append(text[position:])
    return ParsedAction(tuple(calls), "".join(prose).strip()) if calls else None


def _read_function(text: str, start: int, reading: Reading) -> tuple[ToolCall, int]:
    """Returns the call whose opening tag is at ``start``, and where the text goes on.

    Raises:
        FormatError: It cannot be read.
    """
    opening = _FUNCTION.match(text, start)
    name = opening[1].strip() if opening else ""
    if opening is None or not name:
        raise FormatError(f"<function=NAME> is needed, got {text[start:][:20]!r}")
    schemas = reading.tools.properties(name)
    arguments: dict[str, Any] = {}
    position = opening.end()
    while parameter := _PARAMETER.match(text, position):
        key = parameter[1].strip()
        if not key or key in arguments:
            raise FormatError(
                f"the parameter {key} is there twice" if key else "<parameter=> needs a name"
            )
        value, position = _value(text, parameter.end(), schemas, reading)
        arguments[key] = typed(value, schemas.get(key, {}))
    return ToolCall(name, arguments), _end(text, position, reading)


def _value(text: str, start: int, schemas: Mapping[str, Any], reading: Reading) -> tuple[str, int]:
    """Returns the text of a value, and where the text goes on.

    It ends at the first ``</parameter>``. Where a line begins with the tag of another parameter or
    tool before that, the closing tag was forgotten: the second attempt ends it there.
    """
    known = {"parameter": schemas.keys(), "function": reading.tools.names}
    for tag in _NEXT_TAG.finditer(text, start):
        if tag[0] == _END_OF_VALUE:
            return _trimmed(text[start : tag.start()]), tag.end()
        is_text = tag[2].strip() not in known[tag[1]] if tag[1] else not reading.forgives
        if is_text:
            continue
        if tag[1] == "function" or not reading.forgives:
            break
        return _trimmed(text[start : tag.start() + 1]), tag.start() + 1
    raise FormatError(f"a value is not closed by {_END_OF_VALUE}")


def _trimmed(value: str) -> str:
    return value.removeprefix("\n").removesuffix("\n")


def _end(text: str, position: int, reading: Reading) -> int:
    """Returns where a call ends; the second attempt also ends it with the text."""
    if closing := _CLOSING.match(text, position):
        return closing.end()
    rest = skip_space(text, position)
    if reading.forgives and _END.startswith(text[rest : rest + len(_END)]):
        return len(text)  # servers eat the tag, or half of it, when it is also the stop string
    if reading.forgives and text.startswith(("</tool_call>", "<tool_call>", FUNCTION), rest):
        return rest
    raise FormatError(f"<parameter=KEY> or {_END} is needed, got {text[rest:][:20]!r}")


def written_function(call: ToolCall, *, inline: bool) -> str:
    """Returns a call in tags; ``inline`` leaves values of one line on the line of their tags."""
    lines = [f"<function={call.name}>"]
    for key, value in call.arguments.items():
        plain = untyped(value)
        space = "" if inline and "\n" not in plain else "\n"
        lines.append(f"<parameter={key}>{space}{plain}{space}{_END_OF_VALUE}")
    return "\n".join([*lines, _END])
