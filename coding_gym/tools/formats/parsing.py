"""Text to tool calls."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coding_gym.text.unicode import well_formed
from coding_gym.tools.formats.catalog import AUTO, FORMATS, split_format
from coding_gym.tools.formats.format import Format, Reading
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.mending import lenient_reader
from coding_gym.tools.formats.parsed import FormatError, ParsedAction
from coding_gym.tools.formats.reading import (
    MAX_CALLS,
    decode_loosely,
    read_strictly,
)
from coding_gym.tools.patch_envelope import BEGIN, BEGIN_LINE, END_LINE


def _line(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"^{pattern}[ \t\r]*$", re.MULTILINE)


_JSON = ("openai", "llama3", "json")
_LOOKS_LIKE_JSON = re.compile(r"""\{\s*(?:["'}]|\w+\s*:)|\[\s*[\[{\]"]""")
# What shows beyond doubt that a text is in a format.
_MARK = re.compile(
    r"(?P<hermes><tool_call>\s*\{)"
    r"|(?P<nanoagent><tool_call>\s*\[)"
    r"|(?P<qwen3_coder><tool_call>\s*<function=)"
    r"|(?P<swe_agent><function=)"
    r"|(?P<mistral>\[TOOL_CALLS\])"
    r"|(?P<llama3><\|python_tag\|>)"
)

# Where the blocks of formats that are text begin and end.
_BLOCKS = {
    "bash_block": (_line(r"```(?:bash|mswea_bash_command)"), _line("```")),
    "apply_patch": (BEGIN_LINE, END_LINE),
}
_MAY_BE_CALL = re.compile(rf"\A[\[{{]|```|{re.escape(BEGIN)}|{_MARK.pattern}")


def parse_action(
    text: str,
    tool_format: str = AUTO,
    schemas: Sequence[Mapping[str, Any]] = (),
    *,
    text_formats: Collection[str] = (),
) -> ParsedAction:
    """Reads the tool calls out of a policy's reply. Never raises on any text.

    Args:
        text: The reply.
        tool_format: One of `TOOL_FORMATS`, or one with ``[strict]`` behind it: then nothing is
            repaired, and only what the format itself would write is read.
        schemas: The tools that exist, as OpenAI function schemas. JSON that is broken is repaired
            only where the outcome names one of them; formats without types take these from here.
        text_formats: What ``auto`` tries too, after all others; see `Toolset.text_formats`.

    Raises:
        UnknownNameError: There is no such format.
    """
    name, exact = split_format(tool_format)
    text = well_formed(text)
    thought, body = _split_thought(text)
    groups = _groups(body, text_formats) if name == AUTO else [(name,)]
    readings = _readings(text, schemas, exact=exact, alone=name != AUTO)
    attempts = (
        (FORMATS[one], reading) for group in groups for reading in readings for one in group
    )
    error, is_attempt = "", name == "bash_block"
    for chosen, reading in attempts:
        try:
            parsed = chosen.parse(body, reading)
            if parsed is not None:
                return _finish(parsed, thought)
        except FormatError as failure:
            error = f"The tool call could not be read: {failure}. Expected {chosen.expected}."
            is_attempt = is_attempt or chosen.name in text_formats
    chosen = FORMATS["json" if name == AUTO else name]
    if not (is_attempt or _seems_to_call(body or thought, chosen)):
        return ParsedAction(text=text.strip())
    where = "" if body else " after </think>"
    error = error or f"No tool call was found{where}. Expected {chosen.expected}."
    return ParsedAction(text=text.strip(), error=" ".join(error.splitlines()))


def _readings(
    text: str, schemas: Sequence[Mapping[str, Any]], *, exact: bool, alone: bool
) -> list[Reading]:
    """Returns how to read: strictly first, then forgiving what is clear."""
    tools = KnownTools(tuple(schemas))
    strict = Reading(json=read_strictly, tools=tools, exact=exact, alone=alone)
    if exact:
        return [strict]
    return [strict, replace(strict, json=lenient_reader(tools.names, len(text)), forgives=True)]


def _groups(body: str, text_formats: Collection[str]) -> Iterator[Sequence[str]]:
    """Yields the formats that ``auto`` tries, in order; `coding_gym.tools.formats` explains it.

    Only the mark that stands first says what a text is in: others stand in its arguments. So
    nothing is looked for behind JSON that is broken, which may be half a call.
    """
    start = 0
    if _LOOKS_LIKE_JSON.match(body):
        yield _JSON
        try:
            _, start = decode_loosely(body)
        except FormatError:
            return
    rest = body[start:]
    outside = _without_blocks(rest, text_formats)
    mark = _MARK.search(outside)
    if mark and mark.lastgroup:
        yield (mark.lastgroup,)
        return
    if outside == rest or '"arguments"' in outside:
        yield ("hermes", "json")
    yield tuple(name for name in _BLOCKS if name in text_formats)


def _without_blocks(body: str, text_formats: Collection[str]) -> str:
    """Returns what stands outside the blocks of these formats, whose content may be anything."""
    for opening, closing in (_BLOCKS[name] for name in _BLOCKS if name in text_formats):
        parts = []
        position = 0
        while opened := opening.search(body, position):
            parts.append(body[position : opened.start()])
            closed = closing.search(body, opened.end())
            position = closed.end() if closed else len(body)
        body = "".join([*parts, body[position:]])
    return body


def _split_thought(text: str) -> tuple[str, str]:
    """Splits off a ``<think>`` block in front; an unfinished one is all thought.

    Its opening tag may be missing, where the chat template wrote it, if nothing before the closing
    one looks like a call, which may hold that tag.
    """
    body = text.strip()
    thought, end, rest = body.partition("</think>")
    is_thought = end and not _MAY_BE_CALL.search(thought)
    if body.startswith("<think>") or is_thought:
        return thought + end, rest.strip()
    return "", body


def _seems_to_call(body: str, chosen: Format) -> bool:
    marks = ('"name"' in body and '"arguments"' in body) or '"tool_calls"' in body
    is_marked = "<tool_call" in body or _MARK.search(body) or (chosen.mark and chosen.mark in body)
    return marks or bool(is_marked) or body.startswith(("{", "[{"))


def _finish(parsed: ParsedAction, thought: str) -> ParsedAction:
    """Gives every call an id of its own, and the thought back to the text."""
    if len(parsed.calls) > MAX_CALLS:
        raise FormatError(f"{len(parsed.calls)} calls in one reply, at most {MAX_CALLS} are read")
    taken = {call.call_id for call in parsed.calls}
    seen: set[str] = set()
    calls = []
    for i, call in enumerate(parsed.calls):
        call_id = call.call_id
        if not call_id or call_id in seen:
            candidates = (f"call_{i}" + "_" * n for n in range(len(parsed.calls) + 1))
            call_id = next(c for c in candidates if c not in taken)
            taken.add(call_id)
        seen.add(call_id)
        calls.append(replace(call, call_id=call_id))
    return replace(parsed, calls=tuple(calls), text=f"{thought}\n{parsed.text}".strip())
