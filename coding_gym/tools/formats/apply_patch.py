"""Format ``apply_patch``: Codex's envelope, ``*** Begin Patch`` to ``*** End Patch``, as the text.

The envelope, with its first and last line, is what the toolset's tool for patches is called with.
"""

from collections.abc import Sequence

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats.format import Format, Reading
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.parsed import FormatError, ParsedAction
from coding_gym.tools.patch_envelope import BEGIN, END


def parse(text: str, reading: Reading) -> ParsedAction | None:
    """Reads each envelope as a call, or returns None where there is none, or no tool for it.

    Raises:
        FormatError: One has no end, or no tool takes it.
    """
    patcher = reading.tools.patcher()
    if patcher is None and not reading.alone:
        return None
    envelopes, prose = _split_envelopes(text)
    if not envelopes:
        return None
    if patcher is None:
        raise FormatError("none of the tools takes a patch")
    tool, argument = patcher
    calls = tuple(ToolCall(tool, {argument: envelope}) for envelope in envelopes)
    return ParsedAction(calls, prose)


def _split_envelopes(text: str) -> tuple[list[str], str]:
    envelopes: list[str] = []
    prose: list[str] = []
    envelope: list[str] | None = None
    for line in text.split("\n"):
        if envelope is None and line.rstrip() == BEGIN:
            envelope = [BEGIN]
        elif envelope is None:
            prose.append(line)
        elif line.rstrip() == END:
            envelopes.append("\n".join([*envelope, END]))
            envelope = None
        else:
            envelope.append(line)
    if envelope is not None:
        raise FormatError(f"the line {END} is missing")
    return envelopes, "\n".join(prose).strip()


def render(calls: Sequence[ToolCall], tools: KnownTools) -> str:
    """Writes the envelopes one after another.

    Raises:
        InvalidArgumentError: A call is of another tool, or its patch is no envelope.
    """
    tool, argument = tools.patcher() or ("", "")
    for call in calls:
        if not tool or call.name != tool or not isinstance(call.arguments.get(argument), str):
            known = f"calls of {tool}" if tool else "none, for none of the tools takes a patch"
            raise InvalidArgumentError(f"apply_patch carries {known}, got one of {call.name!r}")
    return "\n".join(call.arguments[argument] for call in calls)


def _callable(tools: KnownTools) -> tuple[str, ...]:
    patcher = tools.patcher()
    return (patcher[0],) if patcher else ()


FORMAT = Format(
    name="apply_patch",
    parse=parse,
    render=render,
    expected=f"a line {BEGIN}, lines such as *** Update File: a.py, @@, -old, +new, a line {END}",
    explained=f"Write a patch as it is, from a line {BEGIN} to a line {END}.",
    mark=BEGIN,
    is_json=False,
    callable=_callable,
)
