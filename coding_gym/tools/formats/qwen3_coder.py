"""Format ``qwen3_coder``: a function's tags between ``<tool_call>`` and ``</tool_call>``."""

import re
from collections.abc import Sequence

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.format import Format, Reading
from coding_gym.tools.formats.function_tags import FUNCTION, read_functions, written_function
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.parsed import ParsedAction

_OPENING = re.compile(r"<tool_call>\s*(?=<function=)")
_CLOSING = re.compile(r"\s*</tool_call>")
# The models often leave out the first, and servers eat the last.
_MAYBE_OPENING = re.compile(r"(?:<tool_call>\s*)?(?=<function=)")
_MAYBE_CLOSING = re.compile(r"(?:\s*</tool_call>)?")
_JSON = re.compile(r"<tool_call>\s*[\[{]")


def parse(text: str, reading: Reading) -> ParsedAction | None:
    """Reads the calls of all functions; None where there is none, or JSON in a tag before it.

    Raises:
        FormatError: One cannot be read.
    """
    if _JSON.search(text.partition(FUNCTION)[0]):
        return None
    if reading.exact:
        return read_functions(text, reading, _OPENING, _CLOSING)
    return read_functions(text, reading, _MAYBE_OPENING, _MAYBE_CLOSING)


def render(calls: Sequence[ToolCall], tools: KnownTools) -> str:  # noqa: ARG001 - one signature
    """Writes one pair of tags per call."""
    written = (written_function(call, inline=False) for call in calls)
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in written)


FORMAT = Format(
    name="qwen3_coder",
    parse=parse,
    render=render,
    expected=("<tool_call><function=TOOL><parameter=NAME>value</parameter></function></tool_call>"),
    explained=(
        "Write each call in tags, with the values of its parameters as they are, without quotes "
        "or escapes; lists and objects as JSON."
    ),
    mark=FUNCTION,
    is_json=False,
)
