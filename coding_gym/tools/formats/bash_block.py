"""Format ``bash_block``: exactly one fenced block of bash in the reply, as mini-swe-agent reads it.

The block is what the toolset's shell tool is called with. A block that holds nothing but the name
of another tool that needs no argument, such as ``submit``, calls that tool.
"""

from collections.abc import Sequence

from coding_gym.calls import ToolCall
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.formats.format import Format, Reading
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.parsed import FormatError, ParsedAction

_FENCE = "```"
_OPENINGS = ("```bash", "```mswea_bash_command")  # the second is that of mini-swe-agent 2


def parse(text: str, reading: Reading) -> ParsedAction | None:
    """Reads the one block; without any, returns None where other formats are there to be tried.

    Raises:
        FormatError: There is not exactly one, or it is not closed.
    """
    shell = reading.tools.shell()
    if shell is None and not reading.alone:
        return None
    blocks, prose = _split_blocks(text)
    if not blocks and not reading.alone:
        return None
    if shell is None:
        raise FormatError("none of the tools runs a shell command")
    if len(blocks) != 1:
        raise FormatError(f"there are {len(blocks) or 'no'} blocks of bash in the reply")
    tool, argument = shell
    (block,) = blocks
    if block.strip() in reading.tools.nullary:
        return ParsedAction((ToolCall(block.strip()),), prose)
    return ParsedAction((ToolCall(tool, {argument: block}),), prose)


def _split_blocks(text: str) -> tuple[list[str], str]:
    blocks: list[str] = []
    prose: list[str] = []
    block: list[str] | None = None
    for line in text.split("\n"):
        mark = line.rstrip()
        if block is None and mark in _OPENINGS:
            block = []
        elif block is None:
            prose.append(line)
        elif mark == _FENCE:
            blocks.append("\n".join(block))
            block = None
        elif line.startswith(_FENCE):
            raise FormatError("a line inside the block begins with ```")
        else:
            block.append(line)
    if block is not None:
        raise FormatError("the block is not closed by a line ```")
    return blocks, "\n".join(prose).strip()


def render(calls: Sequence[ToolCall], tools: KnownTools) -> str:
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
    known = ", ".join(_callable(tools)) or "none: give the tools' schemas"
    raise InvalidArgumentError(f"bash_block carries calls of {known}, got one of {call.name!r}")


def _callable(tools: KnownTools) -> tuple[str, ...]:
    shell = tools.shell()
    if shell is None:
        return ()
    return tuple(name for name in tools.names if name == shell[0] or name in tools.nullary)


FORMAT = Format(
    name="bash_block",
    parse=parse,
    render=render,
    expected="exactly one block of bash: a line ```bash, a line such as ls -la, and a line ```",
    explained=(
        "Write exactly one block of bash in each reply; it is run in the shell. A block that holds "
        "only the name of a tool that needs no argument calls that tool."
    ),
    is_json=False,
    callable=_callable,
)
