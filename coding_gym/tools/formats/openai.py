"""Format ``openai``: an assistant message with ``tool_calls``, or a bare list of such calls."""

from collections.abc import Sequence
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, Reading
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.objects import is_openai_call, read_calls, to_json
from coding_gym.tools.formats.parsed import FormatError, ParsedAction


def parse(text: str, reading: Reading) -> ParsedAction | None:
    """Reads calls, or returns None where the text is no message and no list of calls.

    Raises:
        FormatError: It is one and cannot be read.
    """
    if not text.startswith(("{", "[")):
        return None
    values = reading.json(text)
    value = values[0] if len(values) == 1 else values
    if isinstance(value, dict) and ("tool_calls" in value or value.get("role") == "assistant"):
        calls = value.get("tool_calls")
        if calls is not None and not isinstance(calls, list):
            raise FormatError('"tool_calls" must be a list')
        reasoning = _content(value.get("reasoning_content") or value.get("reasoning"))
        content = _content(value.get("content"))
        return ParsedAction(read_calls(calls or []), content, reasoning=reasoning)
    if reading.exact:
        return None
    items = value if isinstance(value, list) else [value]
    return ParsedAction(read_calls(items)) if items and all(map(is_openai_call, items)) else None


def _content(content: Any) -> str:
    """Returns a message's text: a string, or the text parts of a list of parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        content = "\n".join(part for part in parts if isinstance(part, str))
    return content.strip() if isinstance(content, str) else ""


def render(calls: Sequence[ToolCall], tools: KnownTools) -> str:  # noqa: ARG001 - one signature
    """Writes an assistant message."""
    tool_calls = [
        {
            "id": call.call_id or f"call_{i}",
            "type": "function",
            "function": {"name": call.name, "arguments": to_json(dict(call.arguments))},
        }
        for i, call in enumerate(calls)
    ]
    return to_json({"role": "assistant", "content": "", "tool_calls": tool_calls})


FORMAT = Format(
    name="openai",
    parse=parse,
    render=render,
    expected=(
        'an assistant message {"role": "assistant", "content": "…", "tool_calls": [{"id": "…", '
        '"type": "function", "function": {"name": "<tool>", "arguments": "{…}"}}]}'
    ),
    explained="Reply with an assistant message as JSON, whose tool_calls are the calls.",
)
