"""Formats without JSON or tags: one block of bash, and Codex's patches.

``bash_block`` is exactly one fenced block of bash in the reply, as mini-swe-agent reads it: the
argument of the toolset's shell tool. A block that holds nothing but the name of another tool that
needs no argument, such as ``submit``, calls that tool. ``apply_patch`` is Codex's envelope, from
``*** Begin Patch`` to ``*** End Patch``: with both lines, the argument of the tool for patches.
"""

import re
from collections.abc import Callable, Sequence

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats.format import Format, KnownTools, ParsedAction, Reading
from coding_gym.tools.formats.json_text import FormatError
from coding_gym.tools.patches import BEGIN, BEGIN_LINE, END, END_LINE

_FENCE = "```"
_OPENINGS = ("```bash", "```mswea_bash_command")  # the second is that of mini-swe-agent 2

BLOCKS = {
    "bash_block": (
        re.compile(r"^```(?:bash|mswea_bash_command)[ \t\r]*$", re.MULTILINE),
        re.compile(r"^```[ \t\r]*$", re.MULTILINE),
    ),
    "apply_patch": (BEGIN_LINE, END_LINE),
}
"""The lines at which the blocks of each format begin and end."""


def _split(
    text: str, begins: Callable[[str], bool], ends: Callable[[str], bool], missing: str
) -> tuple[list[list[str]], str]:
    """Returns the lines between two marks, of each block, and what stands outside of blocks.

    Raises:
        FormatError: The last block has no end, or a fence opens inside one of bash.
    """
    blocks: list[list[str]] = []
    prose: list[str] = []
    block: list[str] | None = None
    for line in text.split("\n"):
        if block is None and begins(line.rstrip()):
            block = []
        elif block is None:
            prose.append(line)
        elif ends(line.rstrip()):
            blocks.append(block)
            block = None
        elif line.startswith(_FENCE) and ends(_FENCE):
            raise FormatError("a line inside the block begins with ```")
        else:
            block.append(line)
    if block is not None:
        raise FormatError(missing)
    return blocks, "\n".join(prose).strip()


def _read_bash(text: str, reading: Reading) -> ParsedAction | None:
    """Reads the one block; without any, returns None where other formats are there to be tried.

    Raises:
        FormatError: There is not exactly one, or it is not closed.
    """
    shell = reading.tools.shell()
    if shell is None and not reading.alone:
        return None
    missing = "the block is not closed by a line ```"
    blocks, prose = _split(text, _OPENINGS.__contains__, _FENCE.__eq__, missing)
    if not blocks and not reading.alone:
        return None
    if shell is None:
        raise FormatError("none of the tools runs a shell command")
    if len(blocks) != 1:
        raise FormatError(f"there are {len(blocks) or 'no'} blocks of bash in the reply")
    tool, argument = shell
    block = "\n".join(blocks[0])
    if block.strip() in reading.tools.nullary:
        return ParsedAction((ToolCall(block.strip()),), prose)
    return ParsedAction((ToolCall(tool, {argument: block}),), prose)


def _write_bash(calls: Sequence[ToolCall], tools: KnownTools) -> str:
    """Writes the one call as a block.

    Raises:
        InvalidArgumentError: There is not exactly one, or it is of another tool.
    """
    if len(calls) != 1:
        raise InvalidArgumentError(f"bash_block carries exactly one call, got {len(calls)}")
    (call,) = calls
    tool, argument = tools.shell() or ("", "")
    if call.name == tool and isinstance(call.arguments.get(argument), str):
        return f"{_OPENINGS[0]}\n{call.arguments[argument]}\n{_FENCE}"
    if call.name in tools.nullary:
        return f"{_OPENINGS[0]}\n{call.name}\n{_FENCE}"
    known = ", ".join(_bash_callable(tools)) or "none: give the tools' schemas"
    raise InvalidArgumentError(f"bash_block carries calls of {known}, got one of {call.name!r}")


def _bash_callable(tools: KnownTools) -> tuple[str, ...]:
    shell = tools.shell()
    if shell is None:
        return ()
    return tuple(name for name in tools.names if name == shell[0] or name in tools.nullary)


def _read_patches(text: str, reading: Reading) -> ParsedAction | None:
    """Reads each envelope as a call, or returns None where there is none, or no tool for it.

    Raises:
        FormatError: One has no end, or no tool takes it.
    """
    patcher = reading.tools.patcher()
    if patcher is None and not reading.alone:
        return None
    blocks, prose = _split(text, BEGIN.__eq__, END.__eq__, f"the line {END} is missing")
    if not blocks:
        return None
    if patcher is None:
        raise FormatError("none of the tools takes a patch")
    tool, argument = patcher
    envelopes = ("\n".join([BEGIN, *block, END]) for block in blocks)
    return ParsedAction(tuple(ToolCall(tool, {argument: one}) for one in envelopes), prose)


def _write_patches(calls: Sequence[ToolCall], tools: KnownTools) -> str:
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


def _patch_callable(tools: KnownTools) -> tuple[str, ...]:
    patcher = tools.patcher()
    return (patcher[0],) if patcher else ()


FORMATS = (
    Format(
        name="bash_block",
        read=_read_bash,
        write=_write_bash,
        expected="exactly one block of bash: a line ```bash, a line such as ls -la, and a line ```",
        explained=(
            "Write exactly one block of bash in each reply; it is run in the shell. A block that "
            "holds only the name of a tool that needs no argument calls that tool."
        ),
        callable=_bash_callable,
    ),
    Format(
        name="apply_patch",
        read=_read_patches,
        write=_write_patches,
        expected=(
            f"a line {BEGIN}, lines such as *** Update File: a.py, @@, -old, +new, a line {END}"
        ),
        explained=f"Write a patch as it is, from a line {BEGIN} to a line {END}.",
        callable=_patch_callable,
    ),
)
