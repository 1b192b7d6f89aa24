"""Parses replies: searches for marks, selects formats for ``auto``, skips reasoning."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from coding_gym.calls import ToolCall
from coding_gym.text.families import REASONING, STOPS
from coding_gym.text.truncate import well_formed
from coding_gym.tools.formats import json_calls, python_calls, tag_calls
from coding_gym.tools.formats.format import Format, ParsedAction, Piece
from coding_gym.tools.formats.json_text import MAX_CALLS, FormatError, checked
from coding_gym.tools.formats.response_template import read_template
from coding_gym.tools.formats.table import AUTO, FORMATS, row_of
from coding_gym.tools.schemas import KnownTools

if TYPE_CHECKING:
    from coding_gym.text.tokenizers import Tokenizer

_NOT_IN_AUTO = ("bash_block", "template")  # prose contains blocks of bash; a template has no marks
_READERS: Mapping[str, Callable[[Format, str, int, KnownTools], Piece]] = {
    "json": json_calls.read_marked,
    "channels": json_calls.read_channel,
    "tags": tag_calls.read_tags,
    "python": python_calls.read_python,
    "gemma": python_calls.read_python,
    "block": tag_calls.read_block,
}
_CLOSING_OF = dict(REASONING)
_CLOSING = "|".join(map(re.escape, _CLOSING_OF.values()))
_OPENING = "|".join(map(re.escape, _CLOSING_OF))
# The end of reasoning whose opening mark is missing.
_END_OF_THOUGHT = re.compile(
    rf"(?:(?!{_OPENING})[\s\S])*?(?:^(?:{_CLOSING})|(?:{_CLOSING})(?=[ \t\r]*$))", re.MULTILINE
)
# Marks around plain text or nothing.
_IGNORED = re.compile(r"<\|(?:START|END)_(?:RESPONSE|TEXT)\|>|```(?:json|tool_call)?\s*```")
_EMPTY = "there is no content and no tool call"


class ReplyParser:
    """Reads the tool calls of a policy's replies.

    Args:
        tool_format: One of `TOOL_FORMATS`.
        schemas: The tools, as OpenAI function schemas. They supply the types of values in formats
            that write values as plain text.
        text_formats: Additional formats of ``auto``; see `Toolset.text_formats`.
        tokenizer: The policy's tokenizer, for the format ``template``.

    Raises:
        UnknownNameError: There is no such format.
    """

    def __init__(
        self,
        tool_format: str = AUTO,
        schemas: Sequence[Mapping[str, Any]] = (),
        *,
        text_formats: Collection[str] = (),
        tokenizer: "Tokenizer | None" = None,
    ) -> None:
        self.row = row_of(tool_format)
        self.tools = KnownTools(schemas)
        self._schemas, self._tokenizer = schemas, tokenizer
        self._names = (tool_format,) if tool_format != AUTO else _auto(tuple(text_formats))

    def read(
        self, text: str, used_ids: Collection[str] = (), calls: Sequence[ToolCall] | None = None
    ) -> ParsedAction:
        """Reads the tool calls of a reply; reports format errors in the result.

        Args:
            text: The reply.
            used_ids: The ids of earlier calls; calls of this reply get other ids.
            calls: Calls that a server or a trainer has parsed, or None to parse the text. Their
                tools can be unknown.

        Raises:
            InvalidArgumentError: The tokenizer has no response template that works.
        """
        text = text if text.isascii() else well_formed(text)
        row = self.row if calls is None else FORMATS["openai"]
        try:
            if calls is not None:
                for call in calls:
                    checked(dict(call.arguments))
                parsed = ParsedAction(tuple(calls), text)
            elif row.body == "template":
                parsed = read_template(text.strip(), self._schemas, self._tokenizer)
            else:
                parsed = _Scan(_without_stops(text.strip()), self._names, self.tools).read()
            if not parsed.calls and row.body == "block":
                raise FormatError("a reply must have one block of bash, got none")
            return self._finished(parsed, used_ids)
        except FormatError as failure:
            example = FORMATS.get(failure.tool_format.rstrip("_"), row).example.replace("\n", "\\n")
            remedy = f"Expected, with a tool's name and arguments: {example}"
            error = f"The reply could not be read: {failure}. {remedy}"
            return ParsedAction(text=text, error=" ".join(error.splitlines()))

    def _finished(self, parsed: ParsedAction, used_ids: Collection[str]) -> ParsedAction:
        """Returns a reply with resolved names and unique ids of calls.

        New ids have nine letters and digits, as Mistral's chat templates require.
        """
        if len(parsed.calls) > MAX_CALLS:
            raise FormatError(f"at most {MAX_CALLS} calls are allowed, got {len(parsed.calls)}")
        if not parsed.calls and not parsed.text.strip():
            raise FormatError(_EMPTY)
        ids, calls = set(used_ids), []
        for call in parsed.calls:
            if not call.name:  # a server would refuse a later request that contains this call
                raise FormatError(call.error or "a call has no name")
            call_id, number = call.call_id, len(ids)
            while not call_id or call_id in ids:
                call_id, number = f"call{number:05}", number + 1
            ids.add(call_id)
            calls.append(replace(call, name=self.tools.resolve(call.name), call_id=call_id))
        return replace(parsed, calls=tuple(calls))


@cache
def _auto(text_formats: Collection[str] = ()) -> tuple[str, ...]:
    """Returns the names of the rows that ``auto`` reads."""
    return tuple(name for name in FORMATS if name not in _NOT_IN_AUTO or name in text_formats)


@cache
def _marks(names: tuple[str, ...]) -> re.Pattern[str]:
    """Returns the pattern of all marks of these rows, in groups with the names of the rows.

    Marks of the remaining rows, and marks inside or after calls, are in the group ``stray_``.
    """
    rows = [FORMATS[name] for name in names]
    groups = {row.name: row.opens for row in rows if row.opens}
    other_marks = [FORMATS[name].opens for name in _auto() if name not in names]
    parts = [part for name in _auto() for part in (FORMATS[name].parts, FORMATS[name].closes)]
    groups["section_"] = "|".join(dict.fromkeys(row.section for row in rows if row.section))
    groups["stray_"] = "|".join(filter(None, [*other_marks, *parts]))
    groups["thought_"] = f"{_OPENING}|{_CLOSING}"
    bare_bodies = {row.body for row in rows if row.is_bare}
    groups["bare_"] = json_calls.BARE if "json" in bare_bodies else ""
    groups["pythonic_"] = python_calls.BARE if "python" in bare_bodies else ""
    marks = "|".join(f"(?P<{name}>{mark})" for name, mark in groups.items() if mark)
    # The lookahead excludes most positions before the alternatives are tried.
    return re.compile(rf"(?=[<\[{{`]|\bto=|functools\[|commentary to=)(?:{marks})", re.MULTILINE)


class _Scan:
    """Reads one reply from mark to mark.

    Calls in reasoning are ignored. If the chat template writes the opening mark of reasoning, the
    reply begins with reasoning without this mark.

    Args:
        text: The reply.
        names: The names of the rows to read.
        tools: The policy's tools.
    """

    def __init__(self, text: str, names: tuple[str, ...], tools: KnownTools) -> None:
        self.text, self.names, self.tools = text, names, tools
        self.marks = _marks(names)
        self._begin(0)

    def _begin(self, start: int) -> None:
        """Starts reading at a position; the text before it is reasoning."""
        self.thought, self.text = self.text[:start].rstrip(), self.text[start:].strip()
        self.last_closings = {mark: self.text.rfind(mark) for mark in _CLOSING_OF.values()}
        self.position = 0
        self.calls: list[ToolCall] = []
        self.blocks: list[ToolCall] = []
        self.prose: list[str] = []
        self.reasoning: list[str] = []
        self.has_section = self.is_prose = False

    def read(self) -> ParsedAction:
        while mark := self.marks.search(self.text, self.position):
            self.prose.append(self.text[self.position : mark.start()])
            if mark.lastgroup == "thought_":
                self._skip_reasoning(mark)
                continue
            try:
                self.position = self._read_mark(mark)
            except FormatError as error:
                thought_end = _END_OF_THOUGHT.match(self.text, mark.end())
                if self.thought or thought_end is None:
                    error.tool_format = error.tool_format or mark.lastgroup or ""
                    raise
                self._begin(thought_end.end())  # the call is part of the reasoning
        self.prose.append(self.text[self.position :])
        return self._result()

    def _skip_reasoning(self, mark: re.Match[str]) -> None:
        """Moves to the end of the reasoning that a mark opens, or past a closing mark."""
        start, end = mark.span()
        is_first = not self.thought
        if closing := _CLOSING_OF.get(mark[0]):
            is_first = is_first and start == 0
            if self.last_closings[closing] > start:
                end = self.text.index(closing, end) + len(closing)
            elif is_first:
                end = len(self.text)
        if is_first:
            self._begin(end)
        else:
            self.prose.append(self.text[start:end])
            self.position = end

    def _read_mark(self, mark: re.Match[str]) -> int:
        """Reads the call or text at a mark; returns the position after the call or text."""
        name, start = mark.lastgroup or "", mark.start()
        if name == "stray_":
            raise FormatError.at(f"{mark[0]} is outside a call of the format", self.text, start)
        if name == "section_":
            self.has_section = True
            return mark.end()
        piece = self._read_bare(name, start) if name.endswith("_") else None
        if name in FORMATS:
            piece = _READERS[FORMATS[name].body](FORMATS[name], self.text, start, self.tools)
        if piece is None:
            self.prose.append(mark[0])
            return mark.end()
        if piece.is_reply and not piece.calls and piece.text:
            content = _Scan(piece.text, _auto(), self.tools).read()
            piece = piece._replace(calls=content.calls, text=content.text)
        (self.blocks if name == "bash_block" else self.calls).extend(piece.calls)
        if name == "bash_block":
            self.prose.append(self.text[start : piece.end] if self.calls else "")
        self.prose.append(piece.text)
        self.reasoning.append(piece.reasoning)
        return piece.end

    def _read_bare(self, name: str, start: int) -> Piece | None:
        """Reads a call without marks at the start of a line; returns None for other text."""
        line_start = self.text[max(0, start - 40) : start].rpartition("\n")[2]
        if line_start.strip():
            return None
        if name == "pythonic_":
            is_auto = self.names != ("pythonic",)
            return python_calls.read_bare(self.text, start, self.tools, requires_known_tool=is_auto)
        if self.is_prose:
            return None
        piece = json_calls.read_bare(self.text, start, self.tools)
        self.is_prose = piece is None  # one attempt only, which can read the whole text
        return piece

    def _result(self) -> ParsedAction:
        calls = self.calls or self.blocks
        if calls is self.blocks and len(calls) > 1:
            raise FormatError(f"a reply must have one block of bash, got {len(calls)}")
        if self.thought and not self.text:
            raise FormatError(f"{_EMPTY} after its reasoning")
        text = _IGNORED.sub("", "".join(self.prose)).strip()
        visible_parts = [part for part in self.prose if not part.startswith(tuple(_CLOSING_OF))]
        if json_calls.mentions_call("".join(visible_parts)):
            raise FormatError("a call without marks must begin a line")
        if self.has_section and not calls:
            raise FormatError("there is no call between the marks")
        reasoning = "\n".join(filter(None, self.reasoning))
        text = f"{self.thought}\n{text}".strip()
        return ParsedAction(tuple(calls), text, reasoning=reasoning)


def _without_stops(text: str) -> str:
    end = len(text)
    while text.endswith(STOPS, 0, end):
        end -= next(len(stop) for stop in STOPS if text.endswith(stop, 0, end))
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]
