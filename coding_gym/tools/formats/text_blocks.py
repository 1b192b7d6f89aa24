"""Formats without JSON or tags: one block of bash, and Codex's patches.

``bash_block`` is exactly one fenced block of bash in the reply, as mini-swe-agent reads it: the
argument of the toolset's shell tool. A block that holds nothing but the name of another tool that
needs no argument, such as ``submit``, calls that tool. ``apply_patch`` is Codex's envelope, from
``*** Begin Patch`` to ``*** End Patch``: with both lines, the argument of the tool for patches.
"""

import re
from collections.abc import Collection, Sequence

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats.format import Format, KnownTools, ParsedAction, Reading, split_blocks
from coding_gym.tools.formats.json_text import FormatError
from coding_gym.tools.patches import BEGIN, BEGIN_LINE, END, END_LINE

BLOCKS = {
    "bash_block": (  # the second name is that of mini-swe-agent 2
        re.compile(r"^```(?:bash|mswea_bash_command)[ \t\r]*$", re.MULTILINE),
        re.compile(r"^```[ \t\r]*$", re.MULTILINE),
    ),
    "apply_patch": (BEGIN_LINE, END_LINE),
}
"""The lines at which the blocks of each format begin and end."""


def without_blocks(text: str, names: Collection[str]) -> str:
    """Returns what stands outside the blocks of these formats, whose content may be anything."""
    for lines in (lines for name, lines in BLOCKS.items() if name in names):
        text = "".join(part for part, is_block, _ in split_blocks(text, *lines) if not is_block)
    return text


def _blocks(text: str, name: str, missing: str) -> tuple[list[str], str]:
    """Returns the blocks, with the line ends of their lines, and what stands outside of them."""
    blocks: list[str] = []
    prose: list[str] = []
    for part, is_block, is_ended in split_blocks(text, *BLOCKS[name]):
        if is_block and name == "bash_block" and f"\n{part}".find("\n```") >= 0:
            raise FormatError("a line inside the block begins with ```")
        if is_block and not is_ended:
            raise FormatError(missing)
        (blocks if is_block else prose).append(part)
    return blocks, "".join(prose).strip()


def _read_bash(text: str, reading: Reading) -> ParsedAction | None:
    """Reads the one block; without any, returns None where other formats are there to be tried."""
    shell = reading.tools.shell()
    if shell is None and not reading.alone:
        return None
    blocks, prose = _blocks(text, "bash_block", "the block is not closed by a line ```")
    if not blocks and not reading.alone:
        return None
    if shell is None:
        raise FormatError("none of the tools runs a shell command")
    if len(blocks) != 1:
        raise FormatError(f"there are {len(blocks) or 'no'} blocks of bash in the reply")
    block = blocks[0].removesuffix("\n")
    if block.strip() in reading.tools.nullary:
        return ParsedAction((ToolCall(block.strip()),), prose)
    return ParsedAction((ToolCall(shell[0], {shell[1]: block}),), prose)


def _write_bash(calls: Sequence[ToolCall], tools: KnownTools) -> str:
    if len(calls) != 1:
        raise InvalidArgumentError(f"bash_block carries exactly one call, got {len(calls)}")
    (call,) = calls
    tool, argument = tools.shell() or ("", "")
    block = call.arguments.get(argument) if call.name == tool else None
    if call.name in tools.nullary and not isinstance(block, str):
        block = call.name
    if isinstance(block, str):
        return f"```bash\n{block}\n```"
    known = ", ".join(_bash_callable(tools)) or "none: give the tools' schemas"
    raise InvalidArgumentError(f"bash_block carries calls of {known}, got one of {call.name!r}")


def _bash_callable(tools: KnownTools) -> tuple[str, ...]:
    shell = tools.shell()
    return tuple(name for name in tools.names if shell and name in (shell[0], *tools.nullary))


def _read_patches(text: str, reading: Reading) -> ParsedAction | None:
    """Reads each envelope as a call, or returns None where there is none, or no tool for it."""
    patcher = reading.tools.patcher()
    if patcher is None and not reading.alone:
        return None
    blocks, prose = _blocks(text, "apply_patch", f"the line {END} is missing")
    if not blocks:
        return None
    if patcher is None:
        raise FormatError("none of the tools takes a patch")
    tool, argument = patcher
    envelopes = (f"{BEGIN}\n{block}{END}" for block in blocks)
    return ParsedAction(tuple(ToolCall(tool, {argument: one}) for one in envelopes), prose)


def _write_patches(calls: Sequence[ToolCall], tools: KnownTools) -> str:
    tool, argument = tools.patcher() or ("", "")
    for call in calls:
        if not tool or call.name != tool or not isinstance(call.arguments.get(argument), str):
            known = f"calls of {tool}" if tool else "none, for none of the tools takes a patch"
            raise InvalidArgumentError(f"apply_patch carries {known}, got one of {call.name!r}")
    return "\n".join(call.arguments[argument] for call in calls)


def _patch_callable(tools: KnownTools) -> tuple[str, ...]:
    return (tools.patcher() or ())[:1]


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
