"""Writes tool calls as the text of a reply, for tests of the readers."""

import json
import re
from collections.abc import Mapping
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format
from coding_gym.tools.formats.table import row_of

_OBJECT = '{"ARGUMENT": "VALUE"}'
_STRING = '"{\\"ARGUMENT\\": \\"VALUE\\"}"'  # the object as a JSON string
_SEPARATORS = {"python": ", ", "gemma": ",", "tags": "\n"}
_QUOTED = {"python": '"VALUE"', "gemma": '<|"|>VALUE<|"|>'}  # a string in the examples


def write_call(call: ToolCall, tool_format: str) -> str:
    """Returns the text of a call in the form of the format's example in the table.

    In formats without quotes a value can contain marks, which makes the text unreadable.
    """
    row = row_of(tool_format)
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
