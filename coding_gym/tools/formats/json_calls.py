"""Reads JSON calls between marks, without marks, in OpenAI messages, and in Harmony's channels."""

import re
from collections.abc import Mapping
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, Piece, match_at
from coding_gym.tools.formats.json_text import MAX_CALLS, FormatError, decode, decode_whole
from coding_gym.tools.schemas import KnownTools

_NAME_KEYS = ("name", "tool_name")
_ARGUMENT_KEYS = ("arguments", "parameters")
_OTHER_KEYS = frozenset((*_NAME_KEYS, "id", "tool_call_id", "type", "index", "function"))
_SEPARATOR = re.compile(r"[\s;,]*(?:<\|python_tag\|>)?\s*")

_KEY = r"""["'](?:name|type|function|id|arguments|parameters|role|tool_calls|content)["']\s*:"""
BARE = rf"(?:\[\s*)?\{{(?=\s*{_KEY})"
"""Pattern of the beginning of JSON calls without marks, at the start of a line."""
_NAME = re.compile(r"""["'](?:tool_)?name["']\s*+:""")
_ARGUMENTS = re.compile(r"""["'](?:arguments|parameters)["']\s*+:""")
_TOOL_CALLS = re.compile(r"""["']tool_calls["']\s*+:""")


# -- Calls as JSON objects ------------------------------------------------------------------------


def read_call(item: Any) -> ToolCall:
    """Converts a JSON value to a tool call; raises FormatError for a value without a call."""
    fields = item.get("function", item) if isinstance(item, Mapping) else {}
    fields = fields if isinstance(fields, Mapping) else item
    name_keys = [key for key in _NAME_KEYS if key in fields]
    argument_keys = [key for key in _ARGUMENT_KEYS if key in fields]
    if not name_keys or not (argument_keys or _OTHER_KEYS.issuperset(fields)):
        raise FormatError(f'an object with "name" and "arguments" is needed, got {item!r:.60}')
    arguments = fields[argument_keys[0]] if argument_keys else None
    return named_call(fields[name_keys[0]], arguments, str(item.get("id") or ""))


def named_call(name: Any, value: Any, call_id: str = "") -> ToolCall:
    """Returns a call of a tool; ``value`` has the arguments, as an object or as JSON text.

    If the text cannot be read, for example in a truncated reply, the call has an ``error``, which
    the tool's result reports.
    """
    if not isinstance(name, str) or not name:
        raise FormatError(f'"name" must be the name of a tool, got {name!r:.60}')
    arguments, error, text = value, "", value if isinstance(value, str) else ""
    if isinstance(value, str):
        try:
            arguments = decode_whole(value) if value.strip() else None
        except FormatError as failure:
            arguments, error = None, str(failure)
    if not isinstance(arguments, dict | None):
        error = f"the arguments must be an object, got {arguments!r:.60}"
    return ToolCall(name, arguments if isinstance(arguments, dict) else {}, call_id, error, text)


def message_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    """Returns the calls of an OpenAI message; raises FormatError if ``tool_calls`` is no list.

    An invalid entry becomes a call with an ``error`` and no name; then the parser rejects the whole
    reply.
    """
    entries = message.get("tool_calls") or ()
    if not isinstance(entries, list | tuple):
        raise FormatError('"tool_calls" must be a list')
    return [_message_call(entry) for entry in entries]


def content_text(content: Any) -> str:
    """Returns the text of a message's content, a text or a list of parts; "" for other values."""
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _message_call(entry: Any) -> ToolCall:
    try:
        return read_call(entry)
    except FormatError as problem:
        call_id = entry.get("id") if isinstance(entry, Mapping) else ""
        return ToolCall("", call_id=str(call_id or ""), error=str(problem))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# -- Between marks --------------------------------------------------------------------------------


def read_marked(row: Format, text: str, start: int, _tools: KnownTools) -> Piece:
    """Reads the calls between the mark at ``start`` and its closing mark."""
    opening = match_at(rf"(?:{row.opens})\s*(?:{row.head})", text, start)
    if opening is None:
        raise FormatError.at("a tool's name is needed after the mark", text, start)
    groups = opening.groupdict()
    name, call_id = groups.get("name") or "", groups.get("id") or ""
    closes = rf"\s*(?:{row.closes or '(?!)'})"
    if name and (closing := match_at(closes, text, opening.end())):
        return Piece([ToolCall(name, {}, call_id)], closing.end())
    first_value, end = decode(text, opening.end())
    values, end = ([first_value], end) if name else _values(text, first_value, end)
    closing = match_at(closes, text, end)
    if closing is None:
        sections = f"|{row.section}" if row.section else ""
        closing = match_at(rf"\s*(?={row.opens}{sections}|\Z)", text, end)
    if closing is None:
        raise FormatError.at("the JSON must end with its closing mark", text, end)
    calls = [named_call(name, first_value, call_id)] if name else _calls(values)
    if not calls:
        raise FormatError("there is no call between the marks")
    return Piece(calls, closing.end())


def _values(text: str, first_value: Any, end: int) -> tuple[list[Any], int]:
    """Returns ``first_value`` with the JSON values after it, and the end of the last value."""
    values = [first_value]
    while len(values) <= MAX_CALLS and (separator := _SEPARATOR.match(text, end)):
        if not text.startswith(("{", "["), separator.end()):
            break
        value, end = decode(text, separator.end())
        values.append(value)
    return values, end


def _calls(values: list[Any]) -> list[ToolCall]:
    return [read_call(item) for value in values for item in _items(value)]


# -- Without marks --------------------------------------------------------------------------------


def read_bare(text: str, start: int, tools: KnownTools) -> Piece | None:
    """Reads a message, calls or other JSON; returns None for invalid JSON that mentions no call."""
    try:
        value, end = decode(text, start)
    except FormatError:
        if mentions_call(text):
            raise
        return None
    if isinstance(value, dict) and ("tool_calls" in value or value.get("role") == "assistant"):
        return _read_message(value, end)
    is_alone = start == 0 and end == len(text)
    if not is_alone and not all(_is_call(item, tools) for item in _items(value)):
        return Piece((), end, text[start:end])
    values, end = _values(text, value, end)
    return Piece(_calls(values), end)


def mentions_call(text: str) -> bool:
    """Returns whether a text has the keys of a call or of a message with calls."""
    return bool((_NAME.search(text) and _ARGUMENTS.search(text)) or _TOOL_CALLS.search(text))


def _is_call(item: Any, tools: KnownTools) -> bool:
    """Returns whether a JSON value is like a call: a name with arguments, or a known name."""
    if not isinstance(item, dict):
        return False
    if isinstance(item.get("function"), dict):
        return True
    has_arguments = not item.keys().isdisjoint(_ARGUMENT_KEYS)
    return isinstance(item.get("name"), str) and (has_arguments or item["name"] in tools.names)


def _read_message(message: Mapping[str, Any], end: int) -> Piece:
    text = content_text(message.get("content")).strip()
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    reasoning = reasoning.strip() if isinstance(reasoning, str) else ""
    return Piece(message_calls(message), end, text, reasoning, is_reply=True)


# -- Harmony --------------------------------------------------------------------------------------

_HEADER = re.compile(
    r"(?:<\|start\|>assistant)?(?P<head>[^{\n<]*+(?:<\|(?:channel|constrain)\|>[^{\n<]*+)*+)"
    r"\s*(?:<\|message\|>|(?=\{))"
)
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_END_OF_MESSAGE = re.compile(r"<\|(?:end|return|call)\|>|(?=<\|start\|>|<\|channel\|>)|\Z")


def read_channel(_row: Format, text: str, start: int, _tools: KnownTools) -> Piece:
    """Reads one message: a call if it has a recipient, else reasoning (channel analysis) or text.

    ``<|call|>`` can be missing after a whole JSON object, because servers remove the stop token.
    """
    header = _HEADER.match(text, start)
    if header is None:
        raise FormatError.at("a header with <|message|> is needed", text, start)
    recipient = _RECIPIENT.search(header["head"])
    if recipient:
        value, end = decode(text, header.end())
        closing = _END_OF_MESSAGE.match(text, len(text) - len(text[end:].lstrip()))
        if closing is None:
            raise FormatError.at("other text follows the JSON", text, end)
        return Piece([named_call(recipient[1], value)], closing.end())
    closing = _END_OF_MESSAGE.search(text, header.end())
    end, position = closing.span() if closing else (len(text), len(text))
    content = text[header.end() : end].strip()
    if "<|channel|>analysis" in header["head"]:
        return Piece((), position, reasoning=content)
    return Piece((), position, content)
