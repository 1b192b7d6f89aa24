"""Data classes: a format, the result of a reader at a mark, and a parsed reply."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coding_gym.calls import ToolCall
from coding_gym.text.families import CALL


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """A parsed reply of a policy.

    Attributes:
        calls: The tool calls in order, with unique ids. A call with unreadable arguments has its
            ``error`` set.
        text: The reply without its calls: the ``content`` of an OpenAI message, or the text with
            the reasoning.
        error: The format error of an unreadable reply, in one line: the position, the rule and the
            expected form; otherwise "".
        reasoning: The reasoning of an OpenAI message, of a response template or of Harmony's
            analysis channel; otherwise "".
    """

    calls: tuple[ToolCall, ...] = ()
    text: str = ""
    error: str = ""
    reasoning: str = ""


class Piece(NamedTuple):
    """The result of a reader at a mark.

    Attributes:
        calls: The calls.
        end: Position after the calls.
        text: Text outside the calls, in formats that put marks around text.
        reasoning: Reasoning, in formats that put marks around reasoning.
        is_reply: Whether ``text`` is the content of an OpenAI message, which is a whole reply.
    """

    calls: Sequence[ToolCall]
    end: int
    text: str = ""
    reasoning: str = ""
    is_reply: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One way to write tool calls: a row of the table. Patterns are regular expressions.

    Attributes:
        name: A value of ``tool_format``.
        body: The reader: ``json``, ``channels`` (Harmony), ``tags``, ``python``,
            ``gemma``, ``block`` (of bash) or ``template`` (the tokenizer's response template).
        opens: Pattern of the mark before one or several calls. For the reader ``tags`` it has one
            group, the tool's name.
        head: Pattern of the text from the opening mark to the body, with the groups ``name`` and
            ``id`` if these precede the arguments.
        closes: Pattern of the mark after the body, or "". After JSON this mark can be missing at
            the end of the reply or before the next mark, because servers remove stop strings.
        section: Pattern of the marks around all calls.
        is_bare: Whether the format includes calls without a mark, at the start of a line.
        argument: Pattern of the tag that opens an argument, with the argument's name as the group.
        argument_closes: Pattern of the tag that closes an argument.
        on_lines: Whether one line end on each side of a value is part of the tags.
        parts: Pattern of other marks that are a format error without the opening mark.
        example: A call of ``TOOL_NAME`` with the argument ``ARGUMENT``, whose value is ``VALUE``.
    """

    name: str
    body: str
    opens: str = ""
    head: str = ""
    closes: str = ""
    section: str = ""
    is_bare: bool = False
    argument: str = ""
    argument_closes: str = ""
    on_lines: bool = False
    parts: str = ""
    example: str = CALL


def match_at(pattern: str, text: str, position: int) -> re.Match[str] | None:
    """Returns the match of a row's pattern at a position."""
    return re.compile(pattern, re.MULTILINE).match(text, position)
