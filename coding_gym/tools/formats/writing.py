"""Writes tool calls as the text of a reply, for demonstrations."""

import json
import re
from collections.abc import Mapping
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats.format import Format
from coding_gym.tools.formats.table import row_of

_OBJECT = '{"ARGUMENT": "VALUE"}'
_STRING = '"{\\"ARGUMENT\\": \\"VALUE\\"}"'  # the object as a JSON string
_SEPARATORS = {"python": ", ", "gemma": ",", "tags": "\n"}
_QUOTED = {"python": '"VALUE"', "gemma": '<|"|>VALUE<|"|>'}  # a string in the examples


def write_call(call: ToolCall, tool_format: str) -> str:
    r"""Returns the text of a call in the form of the format's example in the table.

    The text may be unreadable, because in formats without quotes a value can contain marks.

    Args:
        call: The call.
        tool_format: One of `TOOL_FORMATS` except ``template``; ``auto`` is written as ``json``.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: The format is ``template``, or is ``bash_block`` and the call has
            several arguments.

    >>> write_call(ToolCall("cd", {"path": "src"}), "pythonic")
    "[cd(path='src')]"
    """
    row = row_of(tool_format)
    if row.body == "template" or (row.body == "block" and len(call.arguments) > 1):
        raise InvalidArgumentError(
            f"the format {row.name!r} cannot express the call of {call.name!r} with "
            f"{len(call.arguments)} arguments; use another format, such as 'hermes'"
        )
    if row.body == "block":
        (value,) = call.arguments.values() or (call.name,)
        return row.example.replace("VALUE", str(value))
    old, new = _arguments(row, call.arguments)
    before, _, after = row.example.partition(old)
    return before.replace("TOOL_NAME", call.name) + new + after.replace("TOOL_NAME", call.name)


def _arguments(row: Format, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the arguments of a row's example, and the arguments of a call in the same form."""
    text = json.dumps(arguments, ensure_ascii=False)
    if _STRING in row.example:
        return _STRING, json.dumps(text, ensure_ascii=False)
    if _OBJECT in row.example:
        return _OBJECT, text
    quoted = _QUOTED.get(row.body, "VALUE")
    if row.body == "tags":
        match = re.search(f"{row.argument}(?s:.*?){row.argument_closes}", row.example)
        old = match.group() if match else ""
    else:
        old = f"ARGUMENT{'=' if row.body == 'python' else ':'}{quoted}"
    before, _, after = old.partition(quoted)
    texts = (
        before.replace("ARGUMENT", name) + _value(row.body, value) + after
        for name, value in arguments.items()
    )
    return old, _SEPARATORS[row.body].join(texts)


def _value(body: str, value: Any) -> str:
    if body == "python":
        return repr(value)
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return _QUOTED.get(body, "VALUE").replace("VALUE", value)
