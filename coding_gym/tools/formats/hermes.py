"""Format ``hermes``: JSON between ``<tool_call>`` and ``</tool_call>``."""

from collections.abc import Callable, Sequence
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, Reading
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.objects import check_exact, flat_object, read_calls, to_json
from coding_gym.tools.formats.parsed import FormatError, ParsedAction
from coding_gym.tools.formats.reading import MAX_CALLS, decode_value, skip_space

OPEN = "<tool_call>"
CLOSE = "</tool_call>"
_FUNCTION = "<function="  # what opens a tag of Qwen3-Coder's


def parse(text: str, reading: Reading) -> ParsedAction | None:
    """Reads the calls of all tags, or returns None where there is no tag with JSON.

    Raises:
        FormatError: A tag's content cannot be read.
    """
    return parse_tags(text, reading, check_exact)


def parse_tags(
    text: str, reading: Reading, check: Callable[[Sequence[Any]], None]
) -> ParsedAction | None:
    """Reads the calls of all tags, or returns None where there is no tag with JSON.

    On the second attempt a tag that cannot be read beside others that can gives a call that says
    why.

    Args:
        text: The reply.
        reading: How to read it.
        check: Refuses the values in a tag that are not exactly as they should be.

    Raises:
        FormatError: A tag's content cannot be read.
    """
    start = text.find(OPEN)
    if start >= 0 and text.startswith(_FUNCTION, skip_space(text, start + len(OPEN))):
        return None
    bodies, prose = _split_tags(text, reading)
    calls: list[ToolCall] = []
    num_unreadable = 0
    for body in bodies:
        try:
            values = reading.json(body)
            if reading.exact:
                check(values)
            calls += read_calls(values)
        except FormatError as error:
            num_unreadable += 1
            if not reading.forgives or num_unreadable == len(bodies):
                raise
            calls.append(ToolCall("", error=str(error)))
    return ParsedAction(tuple(calls), prose) if bodies else None


def _split_tags(text: str, reading: Reading) -> tuple[list[str], str]:
    bodies: list[str] = []
    prose: list[str] = []
    position = 0
    while (start := text.find(OPEN, position)) >= 0:
        if len(bodies) == MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        prose.append(text[position:start])
        body, position = _body(text, start + len(OPEN), reading)
        bodies.append(body)
    prose.append(text[position:])
    return bodies, "".join(prose).strip()


def _body(text: str, start: int, reading: Reading) -> tuple[str, int]:
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
    if end > start and reading.exact:
        raise FormatError(f"{CLOSE} is missing after the JSON")
    if end > start and (after == len(text) or text.startswith(OPEN, after)):
        return text[start:end], after
    close = text.find(CLOSE, end)
    if close < 0:
        return text[start:], len(text)
    return text[start:close], close + len(CLOSE)


def render(calls: Sequence[ToolCall], tools: KnownTools) -> str:  # noqa: ARG001 - one signature
    """Writes one tag per call, each on a line of its own."""
    tags = (f"{OPEN}{to_json(flat_object(call, i))}{CLOSE}" for i, call in enumerate(calls))
    return "\n".join(tags)


FORMAT = Format(
    name="hermes",
    parse=parse,
    render=render,
    expected=f'{OPEN}{{"name": "<tool>", "arguments": {{…}}}}{CLOSE}',
    explained=(
        f"Write each call as a JSON object with its name and arguments between {OPEN} and {CLOSE}."
    ),
    mark=OPEN,
)
