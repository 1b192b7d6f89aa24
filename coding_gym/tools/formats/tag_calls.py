"""Reads calls in tags: a tag for each call and each argument, values as plain text.

A value has the type in the tool's schema. In formats with values on separate lines, one line end on
each side is part of the tags, as in the ``qwen3_coder`` parsers of vLLM and SGLang. OpenHands and
SWE-agent strip all white space, including the indentation of an edit.
"""

import re
from collections.abc import Mapping
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, Piece, match_at
from coding_gym.tools.formats.json_calls import named_call
from coding_gym.tools.formats.json_text import FormatError, decode, typed
from coding_gym.tools.schemas import KnownTools, Schema


def read_tags(row: Format, text: str, start: int, tools: KnownTools) -> Piece:
    """Reads the call whose opening tag is at ``start``."""
    opening = match_at(row.opens, text, start)
    name = opening[1].strip() if opening else ""
    if opening is None or not name:
        raise FormatError.at("a tool's name is needed in the tag", text, start)
    if match_at(r"\s*\{", text, opening.end()):
        value, position = decode(text, opening.end())
        call = named_call(name, value)
    else:
        schemas = tools.properties(tools.resolve(name))
        arguments, position = _read_arguments(row, text, opening.end(), schemas)
        call = ToolCall(name, arguments)
    closing = match_at(rf"\s*(?:{row.closes})", text, position)
    if closing is None:
        raise FormatError.at("the call is not closed by its tag", text, position)
    return Piece([call], closing.end())


def _read_arguments(
    row: Format, text: str, position: int, schemas: Mapping[str, Schema]
) -> tuple[dict[str, Any], int]:
    """Returns a call's arguments by name, and the position after them.

    A value ends at the first closing tag that is followed by another argument, by the closing tag
    of the call, or by the end of the text. If a line of the value begins with the tag of another
    argument of the tool, the closing tag is missing: FormatError.
    """
    next_mark = rf"\s*+(?:{row.argument}|{row.closes}|\Z)"
    value_end = re.compile(rf"{row.argument_closes}(?={next_mark})")
    line_tag = re.compile(rf"^[ \t]*{row.argument}", re.MULTILINE)
    arguments: dict[str, Any] = {}
    while tag := match_at(rf"\s*+{row.argument}", text, position):
        key = tag[1].strip()
        if not key or key in arguments:
            raise FormatError.at(
                f"the argument name {key[:40]!r} is empty or used twice", text, position
            )
        closing = value_end.search(text, tag.end())
        value = text[tag.end() : closing.start() if closing else None]
        names_in_value = {name.strip() for name in line_tag.findall(value)}
        if closing is None or not names_in_value.isdisjoint(schemas):
            raise FormatError(f"the value of {key[:40]!r} is not closed by its tag")
        if row.on_lines:
            value = value.removeprefix("\n").removesuffix("\n")
        arguments[key] = typed(value, schemas.get(key, {}))
        position = closing.end()
    return arguments, position


def read_block(row: Format, text: str, start: int, tools: KnownTools) -> Piece:
    """Reads a fenced block of bash: a command, or only the name of a tool without arguments."""
    opening = match_at(row.opens, text, start)
    body = opening.end() if opening else start
    closing = re.compile(rf"^{row.closes}", re.MULTILINE).search(text, body)
    block = text[body : closing.start() if closing else None].removesuffix("\n")
    if closing is None or "\n```" in f"\n{block}":
        raise FormatError("a block must end with a line ```, and no other line may begin with ```")
    shell = tools.shell()
    if shell is None:
        raise FormatError("none of the tools runs a shell command")
    if block.strip() in tools.nullary:
        return Piece([ToolCall(block.strip())], closing.end())
    return Piece([ToolCall(shell[0], {shell[1]: block})], closing.end())
