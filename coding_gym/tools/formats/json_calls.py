"""The JSON dialects: calls as JSON objects, in messages, alone, in fences, or behind marks.

The dialects of a message or a bare object share one reader, which takes the shapes of all of them
unless it reads ``[strict]``. Those with marks differ in the marks (`Marks`) and in whether the
name stands inside the JSON or in front of it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import (
    Format,
    KnownTools,
    ParsedAction,
    Read,
    Reading,
    read_marked,
    split_blocks,
    templated,
)
from coding_gym.tools.formats.json_text import (
    MAX_CALLS,
    FormatError,
    decode,
    decode_whole,
    is_cut_off,
    skip_space,
    to_json,
)

PYTHON_TAG = "<|python_tag|>"
LOOKS_LIKE_JSON = re.compile(r"""\{\s*(?:["'}]|\w+\s*:)|\[\s*[\[{\]"]""")
_KEYS = frozenset({"name", "id", "type", "index"})
_CALL_TYPES = ("tool_use", "function_call")
_ARGUMENTS = re.compile('"(?:arguments|parameters|input)"')
_SEPARATOR = re.compile(r"[\s;]*(?:<\|python_tag\|>)?\s*")
_FENCES = (
    re.compile(r"^[ \t\r]*```(?:json|tool_call)?[ \t\r]*$", re.MULTILINE),
    re.compile(r"^[ \t\r]*```[ \t\r]*$", re.MULTILINE),
)
# A call that may follow prose, on a line of its own; within a sentence it is only mentioned.
_CALL_BEHIND_PROSE = re.compile(
    r"""^[ \t]*+(?=(?:\[\s*)?\{\s*["'](?:name|type|function|id)["'])""", re.MULTILINE
)


# -- Calls as JSON objects ------------------------------------------------------------------------


def _is_call(value: Any) -> bool:
    """Whether a value is a call in any shape, and not something else that has a name."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("function"), dict) or value.get("type") in _CALL_TYPES:
        return True
    has_arguments = "arguments" in value or "parameters" in value or value.keys() <= _KEYS
    return has_arguments and isinstance(value.get("name"), str)


def holds_calls(value: Any) -> bool:
    """Whether a JSON value is a call, a list with one, or a message that may have some."""
    if isinstance(value, dict) and (value.get("role") == "assistant" or "output" in value):
        return True
    return any(map(_is_call, _flattened([value])))


def read_call(item: Any) -> ToolCall:
    """Returns the call that a JSON value is."""
    if not _is_call(item):
        raise FormatError(f'an object with "name" and "arguments" is needed, got {_shape(item)}')
    inner = item["function"] if isinstance(item.get("function"), dict) else item
    value = inner.get("arguments", inner.get("parameters", inner.get("input")))
    call_id = item.get("call_id", item.get("id"))
    return named_call(inner.get("name"), value, call_id if isinstance(call_id, str) else "")


def named_call(name: Any, value: Any, call_id: str = "") -> ToolCall:
    """Returns the call of a tool with these arguments, an object or a string that holds one.

    Arguments in a string are the model's own text inside an envelope that a server made. They are
    never repaired: a command that was cut off must not run as if it were whole.
    """
    if not isinstance(name, str) or not name:
        raise FormatError('"name" must be the name of a tool')
    arguments, error, text = value, "", ""
    if isinstance(value, str):
        text = value
        try:
            arguments = decode_whole(value.strip()) if value.strip() else None
        except FormatError as failure:
            arguments, error = None, str(failure)
    if arguments is None:
        arguments = {}
    elif not isinstance(arguments, dict):
        arguments, error = {}, f"expected an object, got {_shape(arguments)}"
    return ToolCall(name, arguments, call_id, error, text)


def _flattened(values: Sequence[Any]) -> list[Any]:
    """Returns the values, and the items of those that are lists instead of these."""
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def _check_exact(items: Sequence[Any], key: str = "arguments") -> None:
    """Raises FormatError unless each item is a call as `_flat` writes it."""
    for item in items:
        is_object = isinstance(item, dict) and {"name", key} <= item.keys() <= {"id", "name", key}
        if not is_object or not isinstance(item[key], dict):
            raise FormatError(
                f'an object with "name" and an object "{key}", and no more than an "id" beside '
                f"them, is needed, got {_shape(item)}"
            )


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        keys = ", ".join(str(key)[:20] for key in list(value)[:5])
        return f"an object with {keys}" if keys else "an empty object"
    names = {str: "a string", list: "a list", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


# -- Messages, and calls that stand alone ---------------------------------------------------------


def _read_json(dialect: str, text: str, reading: Reading) -> ParsedAction | None:
    """Reads a message, or calls alone, in fences or behind prose; None where there are none."""
    prose, tag, body = "", "", text
    is_json = text.startswith(("{", "["))
    if dialect == "llama3" and not is_json:
        prose, tag, body = text.partition(PYTHON_TAG)
    if not (is_json or tag):
        return None if reading.exact else _read_embedded(text, reading)
    try:
        values = reading.values(body, _SEPARATOR)
    except FormatError:
        is_prose = reading.alone and not (tag or reading.exact or _begins_with_call(text))
        found = _read_embedded(text, reading) if is_prose else None
        if found is None:
            raise
        return found
    if not values:
        raise FormatError("nothing stands behind the mark")
    if len(values) == 1 and isinstance(values[0], dict):
        message = _read_message(values[0], dialect if reading.exact else "")
        if message is not None:
            return message
    if reading.exact:
        if dialect not in ("json", "llama3") or (dialect == "json" and len(values) > 1):
            return None
        items = values[0] if isinstance(values[0], list) and dialect == "json" else values
        _check_exact(items, "arguments" if dialect == "json" else "parameters")
    return _read_values(values, prose.strip(), is_call=bool(tag))


def read_anywhere(text: str, reading: Reading) -> ParsedAction | None:
    """Reads calls in fences or behind prose, which may begin as JSON does, else calls alone."""
    found = None if reading.exact else _read_embedded(text, reading)
    return found or (_read_json("json", text, reading) if text.startswith(("{", "[")) else None)


def _begins_with_call(text: str) -> bool:
    """Whether a text begins with JSON that is a call, or is broken and may be half a call."""
    try:
        value, _ = decode(text, loose=True)
    except FormatError:
        return LOOKS_LIKE_JSON.match(text) is not None
    return holds_calls(value)


def _read_values(
    values: Sequence[Any], prose: str, *, is_call: bool = False
) -> ParsedAction | None:
    """Returns the calls that values, or the items of lists, are; None where they are none.

    A list may have the other parts of a message's content. Where a mark says that a value
    ``is_call``, anything else is an error.
    """
    items = _flattened(values)
    if any(isinstance(item, dict) and item.get("type") in _CALL_TYPES for item in items):
        return _read_parts(items)
    if not is_call and not all(map(_is_call, items)):
        return None
    return ParsedAction(tuple(map(read_call, items)), prose)


def _read_message(value: dict[str, Any], dialect: str) -> ParsedAction | None:
    """Reads a message of OpenAI or Anthropic, or an ``output`` of the Responses API.

    Only that of one dialect is read; "" stands for any.
    """
    output, content, calls = value.get("output"), value.get("content"), value.get("tool_calls")
    if dialect in ("", "responses") and isinstance(output, list):
        is_typed = all(isinstance(item, dict) and "type" in item for item in output)
        return _read_parts(output) if is_typed else None
    is_message = "tool_calls" in value or value.get("role") == "assistant"
    if not is_message or dialect not in ("", "openai", "anthropic"):
        return None
    if calls is not None and not isinstance(calls, list):
        raise FormatError('"tool_calls" must be a list')
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    said = _read_parts(parts)
    if dialect and bool(said.calls) != (dialect == "anthropic"):
        return None
    thought = value.get("reasoning_content") or value.get("reasoning")
    reasoning = thought.strip() if isinstance(thought, str) else said.reasoning
    found = (*said.calls, *map(read_call, calls or ()))
    return ParsedAction(found, said.text, reasoning=reasoning)


def _read_parts(parts: Sequence[Any]) -> ParsedAction:
    """Reads the parts of a message's content: text, thinking, calls, and messages inside."""
    calls: list[ToolCall] = []
    texts: list[str] = []
    thoughts: list[str] = []
    for part in parts:
        if not isinstance(part, dict):
            continue
        kind = part.get("type")
        inner = part.get("summary") if kind == "reasoning" else part.get("content")
        if kind in _CALL_TYPES:
            calls.append(read_call(part))
        elif kind in ("message", "reasoning") and isinstance(inner, list):
            said = [one.get("text") for one in inner if isinstance(one, dict)]
            found = thoughts if kind == "reasoning" else texts
            found += [text for text in said if isinstance(text, str)]
        elif isinstance(text := part.get("thinking", part.get("text")), str):
            (thoughts if kind == "thinking" else texts).append(text)
    return ParsedAction(
        tuple(calls), "\n".join(texts).strip(), reasoning="\n".join(thoughts).strip()
    )


def _read_embedded(text: str, reading: Reading) -> ParsedAction | None:
    """Reads calls in fenced blocks, else those behind prose; None where there are none.

    The last fence need not be closed: servers remove it when it is also the stop string.
    """
    calls: list[ToolCall] = []
    prose: list[str] = []
    for part, is_block, is_ended in split_blocks(text, *_FENCES):
        block = part.removesuffix("\n")
        found = _read_block(block, reading, is_ended=is_ended) if is_block else ()
        calls += found
        prose += () if found else (block,)
    if not calls:
        return _behind_prose(text, reading)
    return ParsedAction(tuple(calls), "\n".join(prose).strip())


def _read_block(block: str, reading: Reading, *, is_ended: bool) -> tuple[ToolCall, ...]:
    """Returns the calls in a fenced block; none where it shows something else."""
    if '"name"' not in block or not block.lstrip().startswith(("{", "[")):
        return ()
    try:
        values = reading.values(block, _SEPARATOR, is_ended=is_ended)
        found = _read_values(values, "")
    except FormatError:
        if _ARGUMENTS.search(block):
            raise
        return ()
    is_example = any(
        item.keys() <= _KEYS and item["name"] not in reading.tools.names
        for item in _flattened(values)
        if isinstance(item, dict) and "name" in item
    )
    return found.calls if found and not is_example else ()


def _behind_prose(text: str, reading: Reading) -> ParsedAction | None:
    """Reads calls from the first object that names its arguments to the end of the text.

    An object in front of it that is whole JSON and no call is prose. Nothing is looked for behind
    one that is broken or names arguments, which may be half a call.
    """
    position = 0
    arguments = _ARGUMENTS.search(text)
    while arguments and (found := _CALL_BEHIND_PROSE.search(text, position)):
        start = found.end()
        if arguments.start() < start:
            return None
        try:
            value, position = decode(text, start, loose=True)
            items = _flattened([value])
        except FormatError:
            items = []
        if all(_is_call(item) and not item.keys() <= _KEYS for item in items):
            return _read_values(reading.values(text[start:], _SEPARATOR), text[:start].strip())
    return None


# -- Calls behind marks ---------------------------------------------------------------------------


class Marks:
    """The marks around the calls of one dialect.

    Args:
        opening: Pattern of what introduces a call.
        head: Pattern of what stands from its end to the content. Where it has a group ``name``, the
            content is the arguments of this tool, and a group ``id`` is the call's id.
        end: The mark behind the content; "" where the next call or the end of the text ends it.
        closing: Pattern of what stands behind the content, where that is not ``end``.
        around: Pattern of the marks around all calls.
        may_lack_end: Whether a server may have removed ``end``, being the stop string.
        is_list: Whether strict reading asks for a list of calls (True), for one (False) or either.
    """

    def __init__(
        self,
        opening: str,
        head: str,
        end: str,
        closing: str = "",
        *,
        around: str = "",
        may_lack_end: bool = False,
        is_list: bool | None = None,
    ) -> None:
        self.opening = re.compile(opening, re.MULTILINE)
        self.head = re.compile(f"(?:{opening})\\s*{head}", re.MULTILINE)
        self.closing = re.compile(closing or rf"\s*{re.escape(end)}")
        self.around = re.compile(around) if around else None
        self.end, self.may_lack_end, self.is_list = end, may_lack_end, is_list


_hermes = partial(Marks, "<tool_call>", "", "</tool_call>", may_lack_end=True)
_MISTRAL = Marks(
    r"\[TOOL_CALLS\]",
    r"(?:(?P<name>[^\s\[\]{}]+)(?:\[CALL_ID\](?P<id>[^\s\[\]{}]*))?(?P<args>\[ARGS\])?\s*(?=\{))?",
    "",
    r"\s*(?=\[TOOL_CALLS\]|\Z)",
    may_lack_end=True,
)
_DEEPSEEK = Marks(
    "<｜tool▁call▁begin｜>",
    r"(?:function<｜tool▁sep｜>)?(?P<name>[^\s<{`]+)\s*(?:<｜tool▁sep｜>\s*)?(?:```(?:json)?\s*)?",
    "<｜tool▁call▁end｜>",
    r"\s*(?:```\s*)?<｜tool▁call▁end｜>",
    around="<｜tool▁calls▁(?:begin|end)｜>",
)
_KIMI_K2 = Marks(
    r"<\|tool_call_begin\|>",
    r"(?P<id>(?:functions\.)?(?P<name>[^\s<>|]+?)(?::\d+)?)\s*<\|tool_call_argument_begin\|>\s*",
    "<|tool_call_end|>",
    around=r"<\|tool_calls?_section_(?:begin|end)\|>",
)


def _read_marks(marks: Marks, text: str, reading: Reading) -> ParsedAction | None:
    """Reads the calls behind all marks; None where there is none.

    On the second attempt a tag of Hermes that cannot be read beside others that can gives a call
    that says why.
    """
    may_skip = reading.forgives and marks.may_lack_end and marks.end
    errors: list[FormatError] = []

    def content(text: str, start: int) -> tuple[list[ToolCall], int]:
        try:
            return _read_marked_json(marks, reading, text, start)
        except FormatError as error:
            if not may_skip:
                raise
            errors.append(error)
            return [ToolCall("", error=str(error))], _end_of_unreadable(marks, text, start)

    parsed = read_marked(text, marks.opening, content, marks.around)
    if parsed and errors and len(errors) == len(parsed.calls):
        raise errors[-1]
    return parsed


def _end_of_unreadable(marks: Marks, text: str, start: int) -> int:
    """Returns where the text goes on behind a call that cannot be read.

    It is the end of the text where marks do not alternate, since a mark may stand in an argument.
    """
    end = text.find(marks.end, start) + len(marks.end)
    opening = marks.opening.pattern
    is_alone = end >= len(marks.end) and text.count(opening, start, end) == 1
    is_clear = is_alone and text.count(marks.end, end) <= text.count(opening, end)
    return end if is_clear else len(text)


def _read_marked_json(
    marks: Marks, reading: Reading, text: str, start: int
) -> tuple[list[ToolCall], int]:
    """Returns the calls of the mark at ``start``, and where the text goes on."""
    head = marks.head.match(text, start)
    if head is None:
        raise FormatError(f"a name is needed behind the mark, got {text[start:][:40]!r}")
    groups = head.groupdict()
    name, call_id = groups.get("name"), groups.get("id") or ""
    if reading.exact and name and "args" in groups and not groups["args"]:
        raise FormatError("[ARGS] is missing behind the name")
    if name and (closed := marks.closing.match(text, head.end())):
        return [ToolCall(name, {}, call_id)], closed.end()
    values, end = _values_behind(marks, text, head.end(), name, reading)
    if name:
        return [named_call(name, values[0], call_id)], end
    if reading.exact and marks.is_list and not (values and isinstance(values[0], list)):
        raise FormatError("a list of calls is needed")
    if reading.exact:
        _check_exact(values if marks.is_list is False else _flattened(values))
    return [read_call(item) for item in _flattened(values)], end


def _values_behind(
    marks: Marks, text: str, start: int, name: str | None, reading: Reading
) -> tuple[list[Any], int]:
    """Returns the JSON values from ``start`` to the closing mark, and where the text goes on.

    They end where the first JSON value does, so that a mark inside a string ends nothing. Broken
    JSON ends at the next closing mark, or with the text where that mark may be missing.
    """
    try:
        value, end = decode(text, start, loose=reading.forgives)
    except FormatError:
        value, end = None, start
    if end > start:
        if closed := marks.closing.match(text, end):
            return [value], closed.end()
        after = skip_space(text, end)
        is_last = after == len(text) or marks.opening.match(text, after)
        if is_last and marks.may_lack_end and not reading.exact:
            return [value], after
        if reading.exact or (is_last and marks.end):
            raise FormatError(f"{marks.end or 'the next mark'} is missing after the JSON")
    if not marks.end and (end > start or marks.opening.search(text, start)):
        decode(text, start, loose=reading.forgives)
        raise FormatError(f"other text follows the calls: {text[skip_space(text, end) :][:20]!r}")
    close = text.find(marks.end, end) if marks.end else -1
    if close < 0 and not marks.may_lack_end:
        raise FormatError(f"{marks.end} is missing")
    stop, position = (close, close + len(marks.end)) if close >= 0 else (len(text), len(text))
    return _repaired(marks, text[start:stop], name, reading, is_ended=close >= 0), position


def _repaired(
    marks: Marks, body: str, name: str | None, reading: Reading, *, is_ended: bool
) -> list[Any]:
    """Returns the values of JSON between two marks that is broken."""
    if marks.opening.search(body):
        raise FormatError(f"another call begins in front of {marks.end or 'the end'}")
    if not is_ended and is_cut_off(body):
        raise FormatError("the JSON is not closed; the reply seems cut off")
    if not name:
        return reading.values(body, is_ended=True)
    # No bracket is added behind the arguments, which would make half a call whole.
    body = body.rstrip().removesuffix("```")
    call = reading.values(f'{{"name": {to_json(name)}, "arguments": {body}', is_ended=True)[0]
    return [call["arguments"] if isinstance(call, dict) else call]


# -- Harmony --------------------------------------------------------------------------------------

_MESSAGE = re.compile(
    r"(?:<\|start\|>assistant)?[ \t]{0,9}(?:to=(?P<to>[^\s<]{1,64})[ \t]{0,9})?"
    r"<\|channel\|>(?P<channel>[^<]*(?:<\|constrain\|>[^<]*)?)<\|message\|>"
)
_RECIPIENT = re.compile(r"to=([^\s<]+)")
_END_OF_MESSAGE = re.compile(r"<\|(?:end|return|call)\|>|(?=<\|start\|>|<\|channel\|>)|\Z")


def _read_harmony(text: str, reading: Reading) -> ParsedAction | None:
    """Reads messages on channels: one with a recipient is a call, one of analysis a thought.

    A server removes ``<|call|>``, the stop token, so that a whole JSON object may end the text.
    """
    calls: list[ToolCall] = []
    texts: list[str] = []
    outside: list[str] = []
    thoughts: list[str] = []
    position = 0
    while message := _MESSAGE.search(text, position):
        if len(calls) == MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        outside.append(text[position : message.start()])
        texts.append(outside[-1])
        start, channel = message.end(), message["channel"]
        recipient = _RECIPIENT.search(channel)
        name = message["to"] or (recipient[1] if recipient else "")
        if name:
            value, end = decode(text, skip_space(text, start), loose=reading.forgives)
            calls.append(named_call(name.removeprefix("functions."), value))
            closed = _END_OF_MESSAGE.match(text, skip_space(text, end))
            if closed is None:
                raise FormatError(f"other text follows the JSON: {text[end:][:20]!r}")
        else:
            closed = _END_OF_MESSAGE.search(text, start)
            end = closed.start() if closed else len(text)
            (thoughts if channel.startswith("analysis") else texts).append(text[start:end])
        position = closed.end() if closed else end
    outside.append(text[position:])
    texts.append(outside[-1])
    said = "\n".join(part.strip() for part in texts if part.strip())
    marks = ("to=functions.", "<|channel|>", "<|message|>")
    if any(mark in part for part in outside for mark in marks):
        raise FormatError("a message to a tool needs a header with <|channel|> and <|message|>")
    if not (calls or thoughts or said != text):
        return None
    return ParsedAction(tuple(calls), said, reasoning="\n".join(map(str.strip, thoughts)))


# -- The formats ----------------------------------------------------------------------------------


def _arguments(call: ToolCall, _index: int) -> dict[str, Any]:
    return dict(call.arguments)


def _flat(call: ToolCall, index: int, key: str = "arguments") -> dict[str, Any]:
    """Returns a call in the flat shape; its id only where it is not the one given by position."""
    data: dict[str, Any] = {"name": call.name, key: dict(call.arguments)}
    return data if call.call_id in ("", f"call_{index}") else {"id": call.call_id} | data


def _openai(call: ToolCall, index: int) -> dict[str, Any]:
    flat = {"name": call.name, "arguments": to_json(dict(call.arguments))}
    return {"id": call.call_id or f"call_{index}", "type": "function", "function": flat}


def _anthropic(call: ToolCall, index: int) -> dict[str, Any]:
    call_id = call.call_id or f"call_{index}"
    return {"type": "tool_use", "id": call_id, "name": call.name, "input": dict(call.arguments)}


def _responses(call: ToolCall, index: int) -> dict[str, Any]:
    openai = _openai(call, index)
    return {"type": "function_call", "call_id": openai["id"], **openai["function"]}


def _fields(
    shape: Callable[[ToolCall, int], dict[str, Any]], call: ToolCall, index: int
) -> Mapping[str, str]:
    """Returns what templates of calls in JSON may hold: a name, JSON, and ids of two families."""
    prefix = f"functions.{call.name}:"
    is_kimi = call.call_id.startswith(prefix) and call.call_id.removeprefix(prefix).isdigit()
    is_mistral = re.fullmatch("[A-Za-z0-9]{9}", call.call_id)
    return {
        "name": call.name,
        "json": to_json(shape(call, index)),
        "kimi_id": call.call_id if is_kimi else f"{prefix}{index}",
        "mistral_id": call.call_id if is_mistral else f"call{index:05}",
    }


def _json(
    name: str,
    read: Read,
    one: str = "{json}",
    shape: Callable[[ToolCall, int], dict[str, Any]] = _arguments,
    **rest: Any,
) -> Format:
    """Returns a format that is written by the template ``one``, with JSON of this shape."""
    is_whole = shape is not _arguments  # else the name stands in front of the JSON
    example = ToolCall("<tool>", _EXAMPLE) if is_whole else ToolCall("TOOL", _EXAMPLE, "abcdefghi")
    options: dict[str, Any] = {"example": example, "explained": _NAMED, "is_json": is_whole} | rest
    return templated(name, read, one, partial(_fields, shape), **options)


def _message(name: str, shape: Callable[[ToolCall, int], dict[str, Any]], opening: str) -> Format:
    """Returns a format that a server makes, whose ``opening`` begins a list of calls."""
    return _json(
        name,
        partial(_read_json, name),
        shape=shape,
        between=", ",
        around=(opening, "]}"),
        example=ToolCall("<tool>", _EXAMPLE, "…"),
        explained="Reply with this JSON alone.",
        is_served=True,
    )


def _write_json(calls: Sequence[ToolCall], _tools: KnownTools) -> str:
    objects = [_flat(call, i) for i, call in enumerate(calls)]
    return to_json(objects[0] if len(objects) == 1 else objects)


_mistral = partial(_read_marks, _MISTRAL)
_deepseek = partial(_read_marks, _DEEPSEEK)
_EXAMPLE = {"NAME": "value"}
_NAMED = "Write each call with the name of its tool and its arguments as a JSON object."
_V3_SECTION = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
FORMATS = (
    _message("openai", _openai, '{"role": "assistant", "content": "", "tool_calls": ['),
    _message("anthropic", _anthropic, '{"role": "assistant", "content": ['),
    _message("responses", _responses, '{"output": ['),
    Format(
        name="json",
        read=partial(_read_json, "json"),
        write=_write_json,
        expected='{"name": "<tool>", "arguments": {…}}',
        explained="Reply with a call as a JSON object and nothing else, or with several in a list.",
        is_json=True,
    ),
    _json(
        "llama3",
        partial(_read_json, "llama3"),
        shape=partial(_flat, key="parameters"),
        explained="Reply with a call as a JSON object of its name and parameters and nothing "
        "else, or with several of them separated by semicolons.",
        between="; ",
        sign=r"<\|python_tag\|>",
    ),
    _json(
        "hermes",
        partial(_read_marks, _hermes(is_list=False)),
        "<tool_call>{json}</tool_call>",
        _flat,
        explained="Write each call as a JSON object with its name and arguments between "
        "<tool_call> and </tool_call>.",
        between="\n",
        sign=r"<tool_call>\s*\{",
    ),
    _json(
        "nanoagent",
        partial(_read_marks, _hermes(is_list=True)),
        shape=_flat,
        explained="Write the calls as one JSON list of objects, each with its name and "
        "arguments, between <tool_call> and </tool_call>.",
        between=", ",
        around=("<tool_call>[", "]</tool_call>"),
        sign=r"<tool_call>\s*\[(?!\s*[A-Za-z_])",
    ),
    _json(
        "mistral",
        _mistral,
        shape=_flat,
        explained="Write [TOOL_CALLS] and behind it the calls as one JSON list, and nothing "
        "after that.",
        between=", ",
        around=("[TOOL_CALLS] [", "]"),
        sign=r"\[TOOL_CALLS\]",
    ),
    _json("mistral_v11", _mistral, "[TOOL_CALLS]{name}[CALL_ID]{mistral_id}[ARGS]{json}"),
    _json("mistral_v13", _mistral, "[TOOL_CALLS]{name}[ARGS]{json}"),
    _json(
        "harmony",
        _read_harmony,
        "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json}<|call|>",
        between="<|start|>assistant",
        explained="Send each call as a message on the commentary channel to functions.TOOL.",
        sign=r"<\|channel\|>|<\|start\|>assistant|to=functions\.[^\s<]{1,64}[ \t]{0,9}<\|",
    ),
    _json(
        "deepseek_v3",
        _deepseek,
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{json}\n```<｜tool▁call▁end｜>",
        between="\n",
        around=_V3_SECTION,
        sign="<｜tool▁calls?▁begin｜>",
    ),
    _json(
        "deepseek_v31",
        _deepseek,
        "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{json}<｜tool▁call▁end｜>",
        around=_V3_SECTION,
    ),
    _json(
        "kimi_k2",
        partial(_read_marks, _KIMI_K2),
        "<|tool_call_begin|>{kimi_id}<|tool_call_argument_begin|>{json}<|tool_call_end|>",
        around=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        sign=r"<\|tool_call(?:s?_section)?_(?:argument_)?begin",
    ),
)
