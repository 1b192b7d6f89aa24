"""Format ``json``: calls as bare JSON objects, alone in the reply or in fenced blocks."""

from collections.abc import Iterator, Sequence
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.objects import (
    flat_object,
    is_flat_call,
    is_openai_call,
    read_calls,
    to_json,
)
from coding_gym.tools.formats.parsed import FormatError, ParsedAction
from coding_gym.tools.formats.reading import Reader

EXPECTED = '{"name": "<tool>", "arguments": {…}}'

_FENCES = ("```json", "```tool_call", "```")


def parse(text: str, read: Reader) -> ParsedAction | None:
    """Reads calls, or returns None where the text holds none.

    Raises:
        FormatError: There is one and it cannot be read.
    """
    if text.startswith(("{", "[")):
        values = read(text)
        return ParsedAction(read_calls(values)) if _are_calls(values) else None
    calls: list[ToolCall] = []
    prose: list[str] = []
    for fenced, part in _split_fences(text):
        found = _read_block(part, read) if fenced else ()
        calls += found
        prose += () if found else (part,)
    return ParsedAction(tuple(calls), "\n".join(prose).strip()) if calls else None


def _read_block(block: str, read: Reader) -> tuple[ToolCall, ...]:
    """Returns the calls in a fenced block; none where it shows something else."""
    if '"name"' not in block or not block.lstrip().startswith(("{", "[")):
        return ()
    try:
        values = read(block)
    except FormatError:
        if '"arguments"' in block:
            raise
        return ()
    return read_calls(values) if _are_calls(values) else ()


def _are_calls(values: Sequence[Any]) -> bool:
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return all(is_flat_call(item) or is_openai_call(item) for item in items)


def _split_fences(text: str) -> Iterator[tuple[bool, str]]:
    """Yields the parts of a text in order, with whether each was in a fence that may hold calls.

    The last fence need not be closed: servers eat it when it is also the stop string.
    """
    part: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if line.strip() == "```" if fenced else line.strip() in _FENCES:
            yield fenced, "\n".join(part)
            part = []
            fenced = not fenced
        else:
            part.append(line)
    yield fenced, "\n".join(part)


def render(calls: Sequence[ToolCall]) -> str:
    """Writes one call as an object, any other number as a list."""
    objects = [flat_object(call, i) for i, call in enumerate(calls)]
    return to_json(objects[0] if len(objects) == 1 else objects)
