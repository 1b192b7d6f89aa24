"""Format ``hermes``: JSON between ``<tool_call>`` and ``</tool_call>``."""

from collections.abc import Sequence

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.objects import flat_object, read_calls, to_json
from coding_gym.tools.formats.parsed import FormatError, ParsedAction
from coding_gym.tools.formats.reading import (
    MAX_CALLS,
    Reader,
    decode_value,
    read_strictly,
    skip_space,
)

OPEN = "<tool_call>"
CLOSE = "</tool_call>"
EXPECTED = f'{OPEN}{{"name": "<tool>", "arguments": {{…}}}}{CLOSE}'


def parse(text: str, read: Reader) -> ParsedAction | None:
    """Reads the calls of all tags, or returns None where there is no tag.

    Once repairs are allowed, a tag that cannot be read beside others that can gives a call that
    says why.

    Raises:
        FormatError: A tag's content cannot be read.
    """
    bodies, prose = _split_tags(text)
    calls: list[ToolCall] = []
    num_unreadable = 0
    for body in bodies:
        try:
            calls += read_calls(read(body))
        except FormatError as error:
            num_unreadable += 1
            if read is read_strictly or num_unreadable == len(bodies):
                raise
            calls.append(ToolCall("", error=str(error)))
    return ParsedAction(tuple(calls), prose) if bodies else None


def _split_tags(text: str) -> tuple[list[str], str]:
    bodies: list[str] = []
    prose: list[str] = []
    position = 0
    while (start := text.find(OPEN, position)) >= 0:
        if len(bodies) == MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        prose.append(text[position:start])
        body, position = _body(text, start + len(OPEN))
        bodies.append(body)
    prose.append(text[position:])
    return bodies, "".join(prose).strip()


def _body(text: str, start: int) -> tuple[str, int]:
    """Returns a tag's content and where the text goes on.

    The content ends where its JSON value does, so that a closing tag inside a string closes
    nothing; broken JSON ends at the next closing tag, or with the text, since servers eat the tag
    when it is also the stop string.
    """
    start = skip_space(text, start)
    try:
        _, end = decode_value(text, start)
    except FormatError:
        end = start
    after = skip_space(text, end)
    if end > start and text.startswith(CLOSE, after):
        return text[start:end], after + len(CLOSE)
    if end > start and (after == len(text) or text.startswith(OPEN, after)):
        return text[start:end], after
    close = text.find(CLOSE, end)
    if close < 0:
        return text[start:], len(text)
    return text[start:close], close + len(CLOSE)


def render(calls: Sequence[ToolCall]) -> str:
    """Writes one tag per call, each on a line of its own."""
    tags = (f"{OPEN}{to_json(flat_object(call, i))}{CLOSE}" for i, call in enumerate(calls))
    return "\n".join(tags)
