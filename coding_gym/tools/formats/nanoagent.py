"""Format ``nanoagent``: a JSON list of calls between ``<tool_call>`` and ``</tool_call>``.

As the 135M-parameter NanoAgent writes them. Its ``<think>`` block in front is no part of the
format: every format skips one.
"""

from collections.abc import Sequence
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, Reading
from coding_gym.tools.formats.hermes import CLOSE, OPEN, parse_tags
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.objects import check_exact, flat_object, to_json
from coding_gym.tools.formats.parsed import FormatError, ParsedAction


def parse(text: str, reading: Reading) -> ParsedAction | None:
    """Reads the calls of all tags, or returns None where there is no tag with JSON.

    Raises:
        FormatError: A tag's content cannot be read.
    """
    return parse_tags(text, reading, _check_lists)


def _check_lists(values: Sequence[Any]) -> None:
    if len(values) != 1 or not isinstance(values[0], list):
        raise FormatError("a list of calls is needed")
    check_exact(values[0])


def render(calls: Sequence[ToolCall], tools: KnownTools) -> str:  # noqa: ARG001 - one signature
    """Writes one tag with a list of all calls."""
    return f"{OPEN}{to_json([flat_object(call, i) for i, call in enumerate(calls)])}{CLOSE}"


FORMAT = Format(
    name="nanoagent",
    parse=parse,
    render=render,
    expected=f'{OPEN}[{{"name": "<tool>", "arguments": {{…}}}}]{CLOSE}',
    explained=(
        f"Write the calls as one JSON list of objects, each with its name and arguments, between "
        f"{OPEN} and {CLOSE}."
    ),
    mark=OPEN,
)
