"""Calls written in a format, for demonstrations; `ReplyParser` reads the same calls back."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format
from coding_gym.tools.formats.table import row_of

_OBJECT = '{"ARGUMENT": "VALUE"}'
_PIECES = {
    "tags": re.compile(r"<[^<]*ARGUMENT.*?VALUE[^>]*>\n?", re.DOTALL),
    "python": re.compile(r'ARGUMENT="VALUE"'),
    "gemma": re.compile(r'ARGUMENT:<\|"\|>VALUE<\|"\|>'),
}
"""By the reader of a row: what its example has for each argument."""
_BETWEEN = {"tags": "", "python": ", ", "gemma": ","}


def write_call(tool_format: str, call: ToolCall) -> str:
    """Returns a reply that calls a tool in a format which the system prompt explains.

    Args:
        tool_format: A name of the table.
        call: The call; in the format ``bash_block``, of a tool with one argument or none.

    >>> write_call("hermes", ToolCall("shell", {"cmd": "ls"}))
    '<tool_call>{"name": "shell", "arguments": {"cmd": "ls"}}</tool_call>'
    """
    row = row_of(tool_format)
    if row.body == "block":
        value = next(iter(call.arguments.values()), call.name)
        before, after = row.example.split("VALUE")
        return f"{before}{value}{after}"
    if _OBJECT in row.example:
        before, after = row.example.replace("TOOL_NAME", call.name).split(_OBJECT)
        return f"{before}{json.dumps(dict(call.arguments), ensure_ascii=False)}{after}"
    return _with_pieces(row, call)


def _with_pieces(row: Format, call: ToolCall) -> str:
    text = row.example.replace("TOOL_NAME", call.name)
    found = _PIECES[row.body].search(text)
    if found is None:
        raise ValueError(f"the example of {row.name!r} has no argument")
    write = _WRITERS[row.body]
    pieces = (write(found[0], name, value) for name, value in call.arguments.items())
    return text[: found.start()] + _BETWEEN[row.body].join(pieces) + text[found.end() :]


def _in_tags(piece: str, name: str, value: Any) -> str:
    is_text = isinstance(value, str)
    piece = piece if is_text else piece.replace('string="true"', 'string="false"')
    before, after = piece.replace("ARGUMENT", name).split("VALUE")
    return f"{before}{value if is_text else json.dumps(value)}{after}"


def _as_keyword(_: str, name: str, value: Any) -> str:
    return f"{name}={value!r}"


def _as_gemma(piece: str, name: str, value: Any) -> str:
    if not isinstance(value, str):
        return f"{name}:{json.dumps(value)}"
    before, after = piece.replace("ARGUMENT", name).split("VALUE")
    return f"{before}{value}{after}"


_WRITERS: Mapping[str, Callable[[str, str, Any], str]] = {
    "tags": _in_tags,
    "python": _as_keyword,
    "gemma": _as_gemma,
}
