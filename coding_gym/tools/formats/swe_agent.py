"""Format ``swe_agent``: a function's tags alone, as SWE-agent, SWE-smith and OpenHands write it."""

import re
from collections.abc import Sequence

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, Reading
from coding_gym.tools.formats.function_tags import FUNCTION, read_functions, written_function
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.parsed import ParsedAction

_OPENING = re.compile(r"(?=<function=)")
_CLOSING = re.compile("")


def parse(text: str, reading: Reading) -> ParsedAction | None:
    """Reads the calls of all functions; None where there is none, or one in ``<tool_call>``.

    Raises:
        FormatError: One cannot be read.
    """
    before, tag, _ = text.partition(FUNCTION)
    if not tag or before.rstrip().endswith("<tool_call>"):
        return None
    return read_functions(text, reading, _OPENING, _CLOSING)


def render(calls: Sequence[ToolCall], tools: KnownTools) -> str:  # noqa: ARG001 - one signature
    """Writes one function per call."""
    return "\n".join(written_function(call, inline=True) for call in calls)


FORMAT = Format(
    name="swe_agent",
    parse=parse,
    render=render,
    expected="<function=TOOL><parameter=NAME>value</parameter></function>",
    explained=(
        "Write a call in tags, with the values of its parameters as they are, without quotes or "
        "escapes; lists and objects as JSON."
    ),
    mark=FUNCTION,
    is_json=False,
)
