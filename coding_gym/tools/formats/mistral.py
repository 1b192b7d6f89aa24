"""Format ``mistral``: a JSON list behind ``[TOOL_CALLS]``, or ``[TOOL_CALLS]name[ARGS]{…}``.

The first is that of tokenizers up to v7, the second of v11 and later, where ``[CALL_ID]`` and an id
may stand behind the name (mistral-common's tokenizers; vLLM's ``mistral`` parser).
"""

import re
from collections.abc import Sequence
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, Reading
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.objects import (
    check_exact,
    flat_object,
    flattened,
    read_calls,
    to_json,
)
from coding_gym.tools.formats.parsed import FormatError, ParsedAction
from coding_gym.tools.formats.reading import (
    MAX_CALLS,
    decode_loosely,
    decode_value,
    skip_space,
)

MARK = "[TOOL_CALLS]"
_END = "</s>"
_NAMED = re.compile(r"([^\s\[\]{}]+)(?:\[CALL_ID\]([^\s\[\]{}]*))?(\[ARGS\])?\s*(?=\{)")


def parse(text: str, reading: Reading) -> ParsedAction | None:
    """Reads the calls behind the first mark and all that follow; None where there is no mark.

    Raises:
        FormatError: They cannot be read, or other text stands among or behind them.
    """
    start = text.find(MARK)
    if start < 0:
        return None
    body = text[start:].removesuffix(_END).rstrip()
    values: list[Any] = []
    position = 0
    while position < len(body):
        if not body.startswith(MARK, position):
            raise FormatError(f"other text follows the calls: {body[position:][:20]!r}")
        if len(values) == MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        value, end = _value(body, skip_space(body, position + len(MARK)), reading)
        values.append(value)
        position = skip_space(body, end)
    if reading.exact:
        check_exact(flattened(values))
    return ParsedAction(read_calls(values), text[:start].strip())


def _value(body: str, start: int, reading: Reading) -> tuple[Any, int]:
    """Returns what one mark introduces, a call or a list of calls, and where the text goes on."""
    named = _NAMED.match(body, start)
    if named and reading.exact and not named[3]:
        raise FormatError("[ARGS] is missing behind the name")
    start = named.end() if named else start
    try:
        value, end = (decode_loosely if reading.forgives else decode_value)(body, start)
    except FormatError:
        if not reading.forgives or MARK in body[start:]:
            raise
        return _mended(body[start:], named[1] if named else "", reading), len(body)
    if named:
        value = {"name": named[1], "arguments": value} | ({"id": named[2]} if named[2] else {})
    return value, end


def _mended(rest: str, name: str, reading: Reading) -> list[Any]:
    if not name:
        return flattened(reading.json(rest))
    return reading.json(f'{{"name": {to_json(name)}, "arguments": {rest}}}')


def render(calls: Sequence[ToolCall], tools: KnownTools) -> str:  # noqa: ARG001 - one signature
    """Writes the mark once, with a list of all calls."""
    return f"{MARK} {to_json([flat_object(call, i) for i, call in enumerate(calls)])}"


FORMAT = Format(
    name="mistral",
    parse=parse,
    render=render,
    expected=f'{MARK} [{{"name": "<tool>", "arguments": {{…}}}}]',
    explained=f"Write {MARK} and behind it the calls as one JSON list, and nothing after that.",
    mark=MARK,
)
