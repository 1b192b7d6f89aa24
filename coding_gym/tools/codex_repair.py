"""Arguments of the toolset ``codex`` as small models write them, mended where the meaning is plain.

What AReno mends: names and values that are JSON once more, quotes that were left over, numbers and
truth values as text (these in `given`). Unlike there, text that goes into files or searches is
never touched, and a quote at the end goes only where it has no partner.
"""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coding_gym.calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = frozenset({"path", "status", "command", "patch"})
_MAX_ROUNDS = 3


def mended(call: ToolCall) -> ToolCall:
    """Returns a call with its arguments mended; with an error where two would get one name.

    >>> dict(mended(ToolCall("read_file", {'"path"': 'src/a.py"'})).arguments)
    {'path': 'src/a.py'}
    """
    arguments: Mapping[str, Any] = call.arguments
    if list(arguments) == ["arguments"]:  # wrapped once more
        inner = _as_json(arguments["arguments"])
        arguments = inner if isinstance(inner, dict) else arguments
    meant: dict[str, Any] = {}
    for key, value in arguments.items():
        name = _name(key)
        if name != key and name in arguments:  # the one that needs no mending is meant
            continue
        if name in meant:
            return replace(call, error=call.error or f"`{name:.80}` is there twice")
        meant[name] = _value(name, value)
    return replace(call, arguments=meant)


def _name(key: str) -> str:
    return str(key).strip().lstrip("{").rstrip("}").strip().strip("\"'").strip()


def _value(name: str, value: Any) -> Any:
    if name not in _NAMES or not isinstance(value, str):
        return value
    for _ in range(_MAX_ROUNDS):
        inner = _as_json(value) if value.strip().startswith('"') else None
        if not isinstance(inner, str):
            break
        value = inner
    if name == "patch" and "\n" not in value and "\\n" in value:  # escaped once too often
        inner = _as_json(f'"{value}"')
        return inner if isinstance(inner, str) else value
    if name != "patch" and value.endswith('"') and value.count('"') % 2:
        return value[:-1]
    return value


def _as_json(value: Any) -> Any:
    """Returns what a text says as JSON, or None."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None
