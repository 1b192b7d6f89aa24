"""Format ``json``: calls as bare JSON objects, alone in the reply or in fenced blocks."""

from collections.abc import Iterator, Sequence

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, Reading
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.objects import (
    are_calls,
    check_exact,
    flat_object,
    read_calls,
    to_json,
)
from coding_gym.tools.formats.parsed import FormatError, ParsedAction
from coding_gym.tools.formats.reading import Reader

_FENCES = ("```json", "```tool_call", "```")


def parse(text: str, reading: Reading) -> ParsedAction | None:
    """Reads calls, or returns None where the text holds none.

    Raises:
        FormatError: There is one and it cannot be read.
    """
    if text.startswith(("{", "[")):
        values = reading.json(text)
        if reading.exact:
            check_exact(values[0] if isinstance(values[0], list) else values[:1])
        if not are_calls(values) or (reading.exact and len(values) > 1):
            return None
        return ParsedAction(read_calls(values))
    if reading.exact:
        return None
    calls: list[ToolCall] = []
    prose: list[str] = []
    for fenced, part in _split_fences(text):
        found = _read_block(part, reading.json) if fenced else ()
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
    return read_calls(values) if are_calls(values) else ()


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


def render(calls: Sequence[ToolCall], tools: KnownTools) -> str:  # noqa: ARG001 - one signature
    """Writes one call as an object, any other number as a list."""
    objects = [flat_object(call, i) for i, call in enumerate(calls)]
    return to_json(objects[0] if len(objects) == 1 else objects)


FORMAT = Format(
    name="json",
    parse=parse,
    render=render,
    expected='{"name": "<tool>", "arguments": {…}}',
    explained="Reply with a call as a JSON object and nothing else, or with several in a list.",
)
