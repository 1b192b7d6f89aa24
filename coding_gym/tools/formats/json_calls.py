"""The JSON dialects: calls as JSON objects, in messages, alone, in fences, or behind marks.

The dialects of a message or a bare object share one reader, which takes the shapes of all of them
unless it reads ``[strict]``. Those with marks differ in the marks (`Marks`) and in whether the
name stands inside the JSON or in front of it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, KnownTools, ParsedAction, Reading, read_marked
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
_KEYS = frozenset({"name", "id", "type", "index"})
_CALL_TYPES = ("tool_use", "function_call")
_ARGUMENTS = re.compile('"(?:arguments|parameters|input)"')
_SEPARATOR = re.compile(r"[\s;]*(?:<\|python_tag\|>)?\s*")
_FENCES = ("```json", "```tool_call", "```")
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
    """Returns the call that a JSON value is.

    Raises:
        FormatError: It is none.
    """
    if not _is_call(item):
        raise FormatError(f'an object with "name" and "arguments" is needed, got {_shape(item)}')
    return _take(item)


def _take(item: dict[str, Any]) -> ToolCall:
    inner = item["function"] if isinstance(item.get("function"), dict) else item
    value = inner.get("arguments", inner.get("parameters", inner.get("input")))
    call_id = item.get("call_id", item.get("id"))
    return named_call(inner.get("name"), value, call_id if isinstance(call_id, str) else "")


def named_call(name: Any, value: Any, call_id: str = "") -> ToolCall:
    """Returns the call of a tool with these arguments, an object or a string that holds one.

    Arguments in a string are the model's own text inside an envelope that a server made. They are
    never repaired: a command that was cut off must not run as if it were whole.

    Raises:
        FormatError: The name is none.
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


def _flat(call: ToolCall, index: int, key: str = "arguments") -> dict[str, Any]:
    """Returns a call in the flat shape; its id only where it is not the one given by position."""
    data: dict[str, Any] = {"name": call.name, key: dict(call.arguments)}
    return data if call.call_id in ("", f"call_{index}") else {"id": call.call_id} | data


# -- Messages, and calls that stand alone ---------------------------------------------------------


def _read_json(dialect: str, text: str, reading: Reading) -> ParsedAction | None:
    """Reads a message, or calls alone, in fences or behind prose; None where there are none."""
    prose, tag, body = "", "", text
    if not text.startswith(("{", "[")) and dialect == "llama3":
        prose, tag, body = text.partition(PYTHON_TAG)
    if not tag and not text.startswith(("{", "[")):
        return (
            None if reading.exact else _read_fences(text, reading) or _behind_prose(text, reading)
        )
    values = reading.values(body, _SEPARATOR)
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


def _read_values(
    values: Sequence[Any], prose: str, *, is_call: bool = False
) -> ParsedAction | None:
    """Returns the calls that values are; None where they are something else.

    Args:
        values: Calls and lists of calls; a list may have the other parts of a message's content.
        prose: What stands in front of them.
        is_call: Whether a mark says that they are calls.

    Raises:
        FormatError: A value is no call, although a mark says so.
    """
    items = _flattened(values)
    if any(isinstance(item, dict) and item.get("type") in _CALL_TYPES for item in items):
        return _read_parts(items)
    if all(map(_is_call, items)):
        return ParsedAction(tuple(map(_take, items)), prose)
    return ParsedAction(tuple(map(read_call, items)), prose) if is_call else None


def _read_message(value: dict[str, Any], dialect: str) -> ParsedAction | None:
    """Reads a message of OpenAI or Anthropic, or an ``output`` of the Responses API.

    Args:
        value: What may be one.
        dialect: The only one to read; "" for any.

    Raises:
        FormatError: It is one and cannot be read.
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


def _read_fences(text: str, reading: Reading) -> ParsedAction | None:
    """Reads calls in fenced blocks; None where no block holds one."""
    if "```" not in text:
        return None
    calls: list[ToolCall] = []
    prose: list[str] = []
    for fenced, is_ended, part in _split_fences(text):
        found = _read_block(part, reading, is_ended=is_ended) if fenced else ()
        calls += found
        prose += () if found else (part,)
    return ParsedAction(tuple(calls), "\n".join(prose).strip()) if calls else None


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
    is_shown = any(
        item.keys() <= _KEYS and item["name"] not in reading.tools.names
        for item in _flattened(values)
        if isinstance(item, dict) and "name" in item
    )
    return found.calls if found and not is_shown else ()


def _split_fences(text: str) -> Iterator[tuple[bool, bool, str]]:
    """Yields the parts of a text in order.

    With each come whether it was in a fence that may hold calls, and whether a fence ends it. The
    last fence need not be closed: servers remove it when it is also the stop string.
    """
    part: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if line.strip() == "```" if fenced else line.strip() in _FENCES:
            yield fenced, True, "\n".join(part)
            part = []
            fenced = not fenced
        else:
            part.append(line)
    yield fenced, False, "\n".join(part)


def _behind_prose(text: str, reading: Reading) -> ParsedAction | None:
    """Reads calls from the first object that names its arguments to the end of the text.

    An object in front of it that is whole JSON and no call is prose. Nothing is looked for behind
    one that is broken or names arguments, which may be half a call.

    Raises:
        FormatError: The object or something behind it cannot be read.
    """
    position = 0
    arguments = _ARGUMENTS.search(text)
    while arguments and (found := _CALL_BEHIND_PROSE.search(text, position)):
        start = found.end()
        if arguments.start() < start:
            return None
        try:
            value, position = decode(text, start, loose=True)
        except FormatError:
            return _read_values(reading.values(text[start:], _SEPARATOR), text[:start].strip())
        items = _flattened([value])
        if all(_is_call(item) and not item.keys() <= _KEYS for item in items):
            return _read_values(reading.values(text[start:], _SEPARATOR), text[:start].strip())
    return None


def _write_json(calls: Sequence[ToolCall], _tools: KnownTools) -> str:
    objects = [_flat(call, i) for i, call in enumerate(calls)]
    return to_json(objects[0] if len(objects) == 1 else objects)


def _write_llama3(calls: Sequence[ToolCall], _tools: KnownTools) -> str:
    return "; ".join(to_json(_flat(call, i, "parameters")) for i, call in enumerate(calls))


def _write_message(dialect: str, calls: Sequence[ToolCall], _tools: KnownTools) -> str:
    items: list[Any] = []
    for i, call in enumerate(calls):
        call_id, arguments = call.call_id or f"call_{i}", dict(call.arguments)
        flat = {"name": call.name, "arguments": to_json(arguments)}
        block = {"type": "tool_use", "id": call_id, "name": call.name, "input": arguments}
        shapes = {
            "openai": {"id": call_id, "type": "function", "function": flat},
            "anthropic": block,
            "responses": {"type": "function_call", "call_id": call_id, **flat},
        }
        items.append(shapes[dialect])
    if dialect == "responses":
        return to_json({"output": items})
    rest = {"content": items} if dialect == "anthropic" else {"content": "", "tool_calls": items}
    return to_json({"role": "assistant", **rest})


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
    ) -> None:
        self.opening = re.compile(opening, re.MULTILINE)
        self.head = re.compile(f"(?:{opening})\\s*{head}", re.MULTILINE)
        self.closing = re.compile(closing or rf"\s*{re.escape(end)}")
        self.around = re.compile(around) if around else None
        self.end, self.may_lack_end = end, may_lack_end


_HERMES = Marks("<tool_call>", "", "</tool_call>", may_lack_end=True)
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


def _read_marks(
    marks: Marks,
    text: str,
    reading: Reading,
    check: Callable[[Sequence[Any]], None] = _check_exact,
) -> ParsedAction | None:
    """Reads the calls behind all marks; None where there is none.

    On the second attempt a tag of Hermes that cannot be read beside others that can gives a call
    that says why.

    Raises:
        FormatError: JSON behind a mark cannot be read.
    """
    strictly = partial(_read_marked_json, marks, reading, check)
    if not (reading.forgives and marks.may_lack_end and marks.end):
        return read_marked(text, marks.opening, strictly, marks.around)
    errors: list[FormatError] = []

    def content(text: str, start: int) -> tuple[list[ToolCall], int]:
        try:
            return strictly(text, start)
        except FormatError as error:
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
    marks: Marks,
    reading: Reading,
    check: Callable[[Sequence[Any]], None],
    text: str,
    start: int,
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
    if reading.exact:
        check(values)
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
    """Returns the values of JSON between two marks that is broken.

    Raises:
        FormatError: It is not clear what was intended.
    """
    if marks.opening.search(body):
        raise FormatError(f"another call begins in front of {marks.end or 'the end'}")
    if not is_ended and is_cut_off(body):
        raise FormatError("the JSON is not closed; the reply seems cut off")
    if not name:
        return reading.values(body, is_ended=True)
    body = body.rstrip().removesuffix(
        "```"
    )  # no bracket is added that would make half a call whole
    call = reading.values(f'{{"name": {to_json(name)}, "arguments": {body}', is_ended=True)[0]
    return [call["arguments"] if isinstance(call, dict) else call]


def _check_list(values: Sequence[Any]) -> None:
    if len(values) != 1 or not isinstance(values[0], list):
        raise FormatError("a list of calls is needed")
    _check_exact(values[0])


def _check_items(values: Sequence[Any]) -> None:
    _check_exact(_flattened(values))


def _write_hermes(calls: Sequence[ToolCall], _tools: KnownTools) -> str:
    tags = (f"<tool_call>{to_json(_flat(call, i))}</tool_call>" for i, call in enumerate(calls))
    return "\n".join(tags)


def _write_list(opening: str, closing: str, calls: Sequence[ToolCall], _tools: KnownTools) -> str:
    return f"{opening}{to_json([_flat(call, i) for i, call in enumerate(calls)])}{closing}"


def _write_named(
    one: str, between: str, around: tuple[str, str], calls: Sequence[ToolCall], _tools: KnownTools
) -> str:
    """Writes calls whose name stands in front of their JSON, by a template for one call."""
    written = [
        one.format(
            name=call.name,
            json=to_json(dict(call.arguments)),
            kimi=_kimi_id(call, i),
            nine=call.call_id if re.fullmatch("[A-Za-z0-9]{9}", call.call_id) else f"call{i:05}",
        )
        for i, call in enumerate(calls)
    ]
    return between.join(written).join(around) if written else ""


def _kimi_id(call: ToolCall, index: int) -> str:
    """Returns Kimi K2's id: that of the call where it has this form, else one by position."""
    prefix = f"functions.{call.name}:"
    is_own = call.call_id.startswith(prefix) and call.call_id.removeprefix(prefix).isdigit()
    return call.call_id if is_own else f"{prefix}{index}"


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

    Raises:
        FormatError: A message to a tool has no header or no JSON.
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

_OBJECT = '{"name": "<tool>", "arguments": {…}}'
_HARMONY = "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json}<|call|>"
_V3 = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{json}\n```<｜tool▁call▁end｜>"
_V31 = "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{json}<｜tool▁call▁end｜>"
_K2 = "<|tool_call_begin|>{kimi}<|tool_call_argument_begin|>{json}<|tool_call_end|>"
_K2_SECTION = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
_V3_SECTION = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")


def _expected(one: str, around: tuple[str, str] = ("", "")) -> str:
    example = one.format(name="TOOL", json="{…}", kimi="functions.TOOL:0", nine="abcdefghi")
    return " ".join(example.join(around).splitlines())


def _row(
    name: str,
    read: Callable[[str, Reading], ParsedAction | None],
    write: Callable[[Sequence[ToolCall], KnownTools], str],
    texts: tuple[str, str],
    sign: str = "",
    *,
    is_served: bool = False,
) -> Format:
    """Returns a format that carries any call, its ``texts`` being the expected form and how to."""
    expected, explained = texts
    return Format(
        name=name,
        read=read,
        write=write,
        expected=expected,
        explained=explained,
        sign=sign,
        is_json=True,
        is_served=is_served,
    )


def _message(name: str, expected: str) -> Format:
    read, write = partial(_read_json, name), partial(_write_message, name)
    return _row(name, read, write, (expected, "Reply with this JSON alone."), is_served=True)


_NAMED = "Write each call with the name of its tool and its arguments as a JSON object."


def _named(
    name: str, marks: Marks, one: str, around: tuple[str, str] = ("", ""), sign: str = ""
) -> Format:
    """Returns a format with the name in front of the JSON, written by the template ``one``."""
    between = "\n" if "\n" in one else ""
    return Format(
        name=name,
        read=partial(_read_marks, marks),
        write=partial(_write_named, one, between, around),
        expected=_expected(one, around),
        explained=_NAMED,
        sign=sign,
    )


FORMATS = (
    _message(
        "openai",
        'an assistant message {"role": "assistant", "content": "…", "tool_calls": [{"id": "…", '
        '"type": "function", "function": {"name": "<tool>", "arguments": "{…}"}}]}',
    ),
    _message(
        "anthropic",
        'an assistant message {"role": "assistant", "content": [{"type": "tool_use", "id": "…", '
        '"name": "<tool>", "input": {…}}]}',
    ),
    _message(
        "responses",
        '{"output": [{"type": "function_call", "call_id": "…", "name": "<tool>", "arguments": '
        '"{…}"}]}',
    ),
    _row(
        "json",
        partial(_read_json, "json"),
        _write_json,
        (
            _OBJECT,
            "Reply with a call as a JSON object and nothing else, or with several in a list.",
        ),
    ),
    _row(
        "llama3",
        partial(_read_json, "llama3"),
        _write_llama3,
        (
            '{"name": "<tool>", "parameters": {…}}',
            "Reply with a call as a JSON object of its name and parameters and nothing else, or "
            "with several of them separated by semicolons.",
        ),
        r"<\|python_tag\|>",
    ),
    _row(
        "hermes",
        partial(_read_marks, _HERMES),
        _write_hermes,
        (
            f"<tool_call>{_OBJECT}</tool_call>",
            "Write each call as a JSON object with its name and arguments between <tool_call> and "
            "</tool_call>.",
        ),
        r"<tool_call>\s*\{",
    ),
    _row(
        "nanoagent",
        partial(_read_marks, _HERMES, check=_check_list),
        partial(_write_list, "<tool_call>", "</tool_call>"),
        (
            f"<tool_call>[{_OBJECT}]</tool_call>",
            "Write the calls as one JSON list of objects, each with its name and arguments, "
            "between <tool_call> and </tool_call>.",
        ),
        r"<tool_call>\s*\[(?!\s*[A-Za-z_])",
    ),
    _row(
        "mistral",
        partial(_read_marks, _MISTRAL, check=_check_items),
        partial(_write_list, "[TOOL_CALLS] ", ""),
        (
            f"[TOOL_CALLS] [{_OBJECT}]",
            "Write [TOOL_CALLS] and behind it the calls as one JSON list, and nothing after that.",
        ),
        r"\[TOOL_CALLS\]",
    ),
    _named("mistral_v11", _MISTRAL, "[TOOL_CALLS]{name}[CALL_ID]{nine}[ARGS]{json}"),
    _named("mistral_v13", _MISTRAL, "[TOOL_CALLS]{name}[ARGS]{json}"),
    Format(
        name="harmony",
        read=_read_harmony,
        write=partial(_write_named, _HARMONY, "<|start|>assistant", ("", "")),
        expected=_expected(_HARMONY),
        explained="Send each call as a message on the commentary channel to functions.TOOL.",
        sign=r"<\|channel\|>|<\|start\|>assistant|to=functions\.[^\s<]{1,64}[ \t]{0,9}<\|",
    ),
    _named("deepseek_v3", _DEEPSEEK, _V3, _V3_SECTION, "<｜tool▁calls?▁begin｜>"),
    _named("deepseek_v31", _DEEPSEEK, _V31, _V3_SECTION),
    _named(
        "kimi_k2", _KIMI_K2, _K2, _K2_SECTION, r"<\|tool_call(?:s?_section)?_(?:argument_)?begin"
    ),
)
