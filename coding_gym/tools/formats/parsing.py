"""Text to tool calls: the scan for marks, the choice that ``auto`` makes, reasoning, errors."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from coding_gym.calls import ToolCall, with_unique_ids
from coding_gym.text.truncate import well_formed
from coding_gym.tools.formats import json_calls, python_calls, tag_calls
from coding_gym.tools.formats.format import Format, KnownTools, ParsedAction, Piece, unnamed
from coding_gym.tools.formats.json_text import MAX_CALLS, FormatError, checked
from coding_gym.tools.formats.response_template import read_template
from coding_gym.tools.formats.table import AUTO, FORMATS, row_of
from coding_gym.tools.formats.writing import example

if TYPE_CHECKING:
    from coding_gym.text.tokenizers import Tokenizer

_UNMARKED = ("bash_block", "template")  # `auto` reads no others than those of the table's marks
_READERS: Mapping[str, Callable[[Format, str, int, KnownTools], Piece]] = {
    "json": json_calls.read_marked,
    "channels": json_calls.read_channel,
    "tags": tag_calls.read_tags,
    "python": python_calls.read_python,
    "block": tag_calls.read_block,
}
# The marks around reasoning: of most models, Gemma 4, Cohere, Mistral.
_THOUGHTS = (
    ("<think>", "</think>"),
    ("<|channel>thought", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("[THINK]", "[/THINK]"),
)
# Marks around plain text, and the stop tokens that servers may leave behind a reply.
_IGNORED = re.compile(r"<\|(?:START|END)_(?:RESPONSE|TEXT)\|>")
_STOPS = (
    *("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "</s>", "<|call|>"),
    *("<|return|>", "<｜end▁of▁sentence｜>", "<|observation|>", "<|user|>", "<|end|>", "[e~["),
    *("<end_of_turn>", "<turn|>", "<start_function_response>", "<|tool_response>"),
    *("<|END_OF_TURN_TOKEN|>", "<|end_of_text|>"),
)
# Parts of calls whose opening mark is missing.
_STRAY = (
    r"</?tool_call>|<arg_(?:key|value)>|<parameter=[^<>\n]|</function>|</invoke>|</TOOLCALL>"
    r"|</?(?:｜DSML｜|steptml:)|</tool_calls>|<[｜|]tool▁|<\|tool_call_(?:argument_begin|end)\|>"
    r"|<end_function_call>|<tool_call\|>|<\|END_ACTION\|>|commentary to=|(?<!\S)to=\w+<\|message"
)
_EMPTY = "The reply has no content and no tool call"
_IN_REASONING = f"{_EMPTY} behind its reasoning, in which no call is read"


def parse_action(
    text: str,
    tool_format: str = AUTO,
    schemas: Sequence[Mapping[str, Any]] = (),
    *,
    text_formats: Collection[str] = (),
    tokenizer: "Tokenizer | None" = None,
) -> ParsedAction:
    """Reads the tool calls out of a policy's reply. Never raises on any text.

    Args:
        text: The reply.
        tool_format: One of `TOOL_FORMATS`.
        schemas: The tools that exist, as OpenAI function schemas; formats without types take these
            from here.
        text_formats: The formats that ``auto`` reads besides those with marks of their own; see
            `Toolset.text_formats`.
        tokenizer: The policy's, for the format ``template``.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: The tokenizer has no response template.
    """
    row = row_of(tool_format)
    names = (tool_format,) if tool_format != AUTO else _auto(tuple(text_formats))
    tools = KnownTools(schemas)
    text = (text if text.isascii() else well_formed(text)).strip()
    try:
        if tool_format == "template":
            return _finished(read_template(text, schemas, tokenizer), tools)
        text = _without_stops(text)
        parsed = _read_reply(text, names, tools)
        if not parsed.calls and tool_format == "bash_block":
            raise FormatError("there is no block of bash in the reply")
        if not parsed.calls and tool_format != AUTO and _read_reply(text, _auto(), tools).calls:
            raise FormatError("it is in another format")
        return _finished(parsed, tools)
    except FormatError as failure:
        return _failed(text, failure, row)


def parsed_calls(
    calls: Sequence[ToolCall], text: str, schemas: Sequence[Mapping[str, Any]] = ()
) -> ParsedAction:
    """Returns calls that a caller has parsed, within the limits of `parse_action`. Never raises.

    Args:
        calls: The calls; they may be unknown to every toolset.
        text: The content of the reply.
        schemas: The tools that exist, as OpenAI function schemas.
    """
    text = well_formed(text)
    try:
        kept = [replace(call, arguments=checked(dict(call.arguments))) for call in calls]
        return _finished(ParsedAction(tuple(kept), text), KnownTools(schemas))
    except FormatError as failure:
        return _failed(text, failure, FORMATS["openai"])


def _failed(text: str, failure: FormatError, row: Format) -> ParsedAction:
    """Returns a reply that cannot be read, with an answer in one line."""
    what = "" if str(failure).startswith(_EMPTY) else "The tool call could not be read: "
    expected = example(FORMATS.get(failure.tool_format, row))
    error = f"{what}{failure}. Expected {expected}."
    return ParsedAction(text=text, error=" ".join(error.splitlines()))


@cache
def _auto(text_formats: Collection[str] = ()) -> tuple[str, ...]:
    """Returns the names of the rows that ``auto`` reads."""
    return tuple(name for name in FORMATS if name not in _UNMARKED or name in text_formats)


@cache
def _marks(names: tuple[str, ...]) -> re.Pattern[str]:
    """Returns the pattern of all marks of some rows; the name of the group says which it is."""
    rows = [FORMATS[name] for name in names]
    groups = {row.name: unnamed(row.opens) for row in rows if row.opens}
    sections = dict.fromkeys(row.section for row in rows if row.section)
    groups |= {"section_": "|".join(sections), "stray_": _STRAY if len(rows) > 1 else ""}
    groups["thought_"] = "|".join(re.escape(closing) for _, closing in _THOUGHTS)
    bodies = {row.body for row in rows if row.is_bare}
    groups["bare_json_"] = json_calls.BARE if "json" in bodies else ""
    groups["bare_python_"] = python_calls.BARE if "python" in bodies else ""
    marks = "|".join(f"(?P<{name}>{mark})" for name, mark in groups.items() if mark)
    return re.compile(rf"(?=[<\[{{`]|\bto=|functools\[|commentary to=)(?:{marks})", re.MULTILINE)


def _read_reply(text: str, names: tuple[str, ...], tools: KnownTools) -> ParsedAction:
    """Reads a reply, without its reasoning where it begins with that."""
    for opening, closing in _THOUGHTS:
        if text.startswith(opening):
            end = text.find(closing) + len(closing)
            return _read_behind(text, end if end >= len(closing) else len(text), names, tools)
    return _Scan(text, names, tools, ends_thought=True).read()


def _read_behind(text: str, end: int, names: tuple[str, ...], tools: KnownTools) -> ParsedAction:
    """Reads the text behind reasoning that ends at ``end``."""
    body = text[end:].strip()
    if not body:
        raise FormatError(_IN_REASONING)
    parsed = _Scan(body, names, tools, ends_thought=False).read()
    return replace(parsed, text=f"{text[:end].rstrip()}\n{parsed.text}".strip())


class _Scan:
    """Reads one reply from mark to mark.

    Args:
        text: The reply.
        names: The rows to read.
        tools: The tools that exist.
        ends_thought: Whether the mark that closes reasoning may stand in the text: the chat
            template wrote the one that opens it. No call in front of it counts.
    """

    def __init__(
        self, text: str, names: tuple[str, ...], tools: KnownTools, *, ends_thought: bool
    ) -> None:
        self.text, self.names, self.tools, self.ends_thought = text, names, tools, ends_thought
        self.marks = _marks(names)
        self.calls: list[ToolCall] = []
        self.blocks: list[ToolCall] = []
        self.prose: list[str] = []
        self.reasoning: list[str] = []
        self.has_section, self.reads_bare = False, True

    def read(self) -> ParsedAction:
        """Returns what was read."""
        position = 0
        while mark := self.marks.search(self.text, position):
            self.prose.append(self.text[position : mark.start()])
            if mark.lastgroup == "thought_" and self.ends_thought:
                return _read_behind(self.text, mark.end(), self.names, self.tools)
            try:
                position = self._read_mark(mark)
            except FormatError as failure:
                end = self._end_of_thought(mark.end())
                if not end:
                    failure.tool_format = failure.tool_format or mark.lastgroup or ""
                    raise
                return _read_behind(self.text, end, self.names, self.tools)
            if len(self.calls) + len(self.blocks) > MAX_CALLS:
                raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        self.prose.append(self.text[position:])
        return self._result()

    def _read_mark(self, mark: re.Match[str]) -> int:
        """Reads what stands at a mark, and returns where the text goes on."""
        name, start = mark.lastgroup or "", mark.start()
        if name == "stray_":
            raise FormatError.at(f"{mark[0]} stands outside a call", self.text, start)
        if name == "section_":
            self.has_section = True
            return mark.end()
        piece = self._read_bare(name, start) if name.endswith("_") else None
        if name in FORMATS:
            piece = _READERS[FORMATS[name].body](FORMATS[name], self.text, start, self.tools)
        if piece is None:
            self.prose.append(mark[0])
            return mark.end()
        if piece.is_reply and not piece.calls:
            said = _read_reply(piece.text, _auto(), self.tools) if piece.text else ParsedAction()
            piece = piece._replace(calls=said.calls, text=said.text)
        (self.blocks if name == "bash_block" else self.calls).extend(piece.calls)
        if name == "bash_block":
            self.prose.append(self.text[start : piece.end] if self.calls else "")
        self.prose.append(piece.text)
        self.reasoning.append(piece.reasoning)
        return piece.end

    def _read_bare(self, name: str, start: int) -> Piece | None:
        """Reads a call without marks; None where the text is something else."""
        before = f"\n{self.text[max(0, start - 40) : start]}"
        if name == "thought_" or before.rpartition("\n")[2].strip():
            return None
        if name == "bare_python_":
            is_known = len(self.names) > 1
            return python_calls.read_bare(self.text, start, self.tools, is_known=is_known)
        if not self.reads_bare:
            return None
        row = FORMATS[self.names[0] if len(self.names) == 1 else "json"]
        piece = json_calls.read_bare(row, self.text, start, self.tools)
        # What is no JSON may be as long as the text; a second try would make the work quadratic.
        self.reads_bare = piece is not None
        return piece

    def _end_of_thought(self, start: int) -> int:
        """Returns where reasoning with an unreadable call ends, 0 where it does not."""
        closings = "|".join(re.escape(closing) for _, closing in _THOUGHTS)
        pattern = re.compile(rf"^(?:{closings})|(?:{closings})\s*$", re.MULTILINE)
        end = pattern.search(self.text, start) if self.ends_thought else None
        return end.end() if end else 0

    def _result(self) -> ParsedAction:
        calls = self.calls or self.blocks
        if calls is self.blocks and len(calls) > 1:
            raise FormatError(f"there are {len(calls)} blocks of bash in the reply")
        text = _IGNORED.sub("", "".join(self.prose)).strip()
        if json_calls.mentions_call(text):
            raise FormatError("a call without marks must begin a line")
        if self.has_section and not calls:
            raise FormatError("no call stands between the marks")
        reasoning = "\n".join(filter(None, self.reasoning))
        return ParsedAction(tuple(calls), text, reasoning=reasoning)


def _without_stops(text: str) -> str:
    """Returns a text without the stop tokens behind it."""
    end = len(text)
    while text.endswith(_STOPS, 0, end):
        end -= next(len(stop) for stop in _STOPS if text.endswith(stop, 0, end))
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]


def _finished(parsed: ParsedAction, tools: KnownTools) -> ParsedAction:
    """Returns a reply with resolved names and an id of its own for each call."""
    if len(parsed.calls) > MAX_CALLS:
        raise FormatError(f"more than {MAX_CALLS} calls in one reply")
    if not parsed.calls and not parsed.text.strip():
        raise FormatError(_EMPTY)
    names = [tools.resolve(call.name) for call in parsed.calls]
    calls = [
        call if call.name == name else replace(call, name=name)
        for call, name in zip(parsed.calls, names, strict=True)
    ]
    return replace(parsed, calls=with_unique_ids(calls))
