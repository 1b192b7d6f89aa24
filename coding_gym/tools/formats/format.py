"""One format, and what all share: the reply as read, the tools, marks and blocks, templates.

A ``read`` function, and the functions it calls, raise `FormatError` where calls cannot be read.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from coding_gym.calls import ToolCall
from coding_gym.tools.commands import COMMANDS, SHELLS
from coding_gym.tools.formats.json_text import (
    MAX_CALLS,
    MAX_REPAIR_WORK,
    MAX_REPAIRED_CHARS,
    FormatError,
    decode_all,
    is_cut_off,
    repair,
    repair_work,
)
from coding_gym.tools.schemas import Schema

# A tool that takes one of these, or of `COMMANDS`, and requires nothing else takes a whole text.
_PATCHES = ("patch", "diff", "input")
# Which tool is meant where several take a patch.
_PATCHERS = ("apply_patch",)
_DEBUGGERS = ("pdb",)  # they take a command too, but not one of the shell
_SEPARATOR = re.compile(r"\s*")
_EXAMPLE_OBJECT = re.compile(r'\{\\?"NAME\\?": \\?"value\\?"\}')
_LINE_END_NEXT_TO_TAG = re.compile(r"\s*\n(?=<)|(?<=>)\s*\n")


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """A policy's reply, taken apart.

    Attributes:
        calls: The tool calls in order, each with an id that no other of them has. A call whose
            arguments could not be read has its ``error`` set.
        text: What the policy said beside the calls, the ``content`` of an OpenAI message. A
            ``<think>`` block of plain text stays in it.
        error: Where it seems to have tried a call and none could be read, one line that says why
            and what was expected; else "".
        reasoning: The ``reasoning_content`` or ``reasoning`` of an OpenAI message, the thinking
            blocks of other messages, the analysis channel of Harmony; "" else.
    """

    calls: tuple[ToolCall, ...] = ()
    text: str = ""
    error: str = ""
    reasoning: str = ""


class KnownTools:
    """The tools that a policy has.

    Args:
        schemas: OpenAI function schemas.
    """

    def __init__(self, schemas: Sequence[Schema] = ()) -> None:
        functions = [schema["function"] for schema in schemas]
        self._parameters: dict[str, Schema] = {
            function["name"]: function.get("parameters", {}) for function in functions
        }
        self.names = tuple(self._parameters)

    @property
    def nullary(self) -> tuple[str, ...]:
        """The names of tools that need no argument."""
        return tuple(name for name in self.names if not self._required(name))

    def properties(self, tool: str) -> Mapping[str, Schema]:
        """Returns the schemas of a tool's arguments by name; empty for unknown tools."""
        properties: Mapping[str, Schema] = self._parameters.get(tool, {}).get("properties", {})
        return properties

    def shell(self) -> tuple[str, str] | None:
        """Returns the tool that runs a shell command, and its argument; None where none does."""
        return self._taker(COMMANDS, SHELLS)

    def patcher(self) -> tuple[str, str] | None:
        """Returns the tool that applies a patch, and its argument; None where none does."""
        return self._taker(_PATCHES, _PATCHERS)

    def _taker(
        self, arguments: tuple[str, ...], preferred: tuple[str, ...]
    ) -> tuple[str, str] | None:
        found = {}
        for name in self.names:
            required = self._required(name)
            if len(required) == 1 and required[0] in arguments and name not in _DEBUGGERS:
                found[name] = required[0]
        name = next((name for name in (*preferred, *found) if name in found), "")
        return (name, found[name]) if name else None

    def _required(self, tool: str) -> tuple[str, ...]:
        return tuple(self._parameters[tool].get("required", ()))


class Reading:
    """How replies are to be read.

    Args:
        schemas: The tools there are, as OpenAI function schemas.
        exact: Whether only what the format itself writes counts: ``[strict]``.
        alone: Whether the format was chosen by name, so that no other one will be tried.

    Attributes:
        tools: The tools there are.
        forgives: Whether this is the second attempt, which takes what is broken but clear.
    """

    def __init__(self, schemas: Sequence[Schema], *, exact: bool, alone: bool) -> None:
        self.tools, self.exact, self.alone = KnownTools(schemas), exact, alone
        self.forgives, self._repair_work = False, 0

    def begin(self, num_chars: int) -> None:
        """Prepares the first attempt on a text of this length."""
        self.forgives = False
        self._repair_work = MAX_REPAIR_WORK if num_chars <= MAX_REPAIRED_CHARS else 0

    def values(
        self, text: str, separator: re.Pattern[str] = _SEPARATOR, *, is_ended: bool = False
    ) -> list[Any]:
        """Returns the JSON values of a text, repaired on the second attempt.

        Args:
            text: The text.
            separator: What stands between values.
            is_ended: Whether a mark stands behind the text. Elsewhere the reply ends with it, and
                brackets that are missing there may be those of a reply that was cut off.
        """
        try:
            return decode_all(text, separator, loose=self.forgives)
        except FormatError as error:
            if self.forgives and not is_ended and is_cut_off(text):
                raise FormatError(f"{error}; the reply seems cut off") from error
            if not self.forgives or not self._may_repair(text, error):
                raise
            repaired = repair(text, self.tools.names)
            if repaired is None:
                raise
            return [repaired]

    def _may_repair(self, text: str, error: FormatError) -> bool:
        """Whether syntax is what is wrong, not an end inside a string, and work is left for it."""
        message = getattr(error.__cause__, "msg", "Unterminated")
        if message.startswith("Unterminated") or not self.tools.names:
            return False
        work = repair_work(text)
        if work > self._repair_work:
            return False
        self._repair_work -= work
        return True


Read = Callable[[str, Reading], ParsedAction | None]
Fields = Callable[[ToolCall, int], Mapping[str, str]]


def all_tools(tools: KnownTools) -> tuple[str, ...]:
    """Returns the names of all tools, for formats that can call any of them."""
    return tools.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One way to write tool calls.

    Attributes:
        name: A value of ``tool_format``.
        read: Reads calls; None where the text holds none.
        write: Writes calls.
        expected: The form that a reply should have had, with an example, in one line.
        explained: The instructions for a model, before an example.
        sign: A regular expression that begins with a literal: where it matches, ``auto`` takes the
            text for this format. Its group ``tool``, if any, must match the name of a known tool.
        is_atomic: Whether the sign is a special token of the model, which ends unclosed reasoning.
        is_json: Whether calls are JSON, which carries any argument.
        is_served: Whether a server makes this form, so that the model itself is told nothing.
        callable: Returns the names of the tools that can be called in it.
    """

    name: str
    read: Read
    write: Callable[[Sequence[ToolCall], KnownTools], str]
    expected: str
    explained: str
    sign: str = ""
    is_atomic: bool = True
    is_json: bool = False
    is_served: bool = False
    callable: Callable[[KnownTools], tuple[str, ...]] = all_tools


def templated(
    name: str,
    read: Read,
    one: str,
    fields: Fields,
    *,
    between: str = "",
    around: tuple[str, str] = ("", ""),
    example: ToolCall = ToolCall("TOOL", {"NAME": "value"}),  # noqa: B008 - frozen
    **rest: Any,
) -> Format:
    """Returns a format that is written by templates.

    Args:
        name: Its name.
        read: Reads calls.
        one: The template of one call.
        fields: Returns what replaces the fields of ``one``, for a call and its index.
        between: The text between calls.
        around: The text around all calls, in which {name} is that of the first.
        example: The call that ``expected`` displays.
        rest: Further attributes of the format.
    """
    write = partial(_write, one, fields, between, around)
    written = _LINE_END_NEXT_TO_TAG.sub("", write([example], KnownTools()))
    expected = " ".join(_EXAMPLE_OBJECT.sub("{…}", written).splitlines())
    return Format(name=name, read=read, write=write, expected=expected, **rest)


def _write(
    one: str,
    fields: Fields,
    between: str,
    around: tuple[str, str],
    calls: Sequence[ToolCall],
    _tools: KnownTools,
) -> str:
    written = between.join(one.format(**fields(call, i)) for i, call in enumerate(calls))
    return around[0].replace("{name}", calls[0].name) + written + around[1] if calls else ""


def read_marked(
    text: str,
    opening: re.Pattern[str],
    content: Callable[[str, int], tuple[Sequence[ToolCall], int]],
    around: re.Pattern[str] | None = None,
) -> ParsedAction | None:
    """Reads all calls that stand behind marks, or returns None where there is no mark.

    Args:
        text: The reply.
        opening: What introduces calls.
        content: Reads the calls whose mark begins at an index, and returns where the text goes on.
        around: Marks around a group of calls, removed from what was said beside them.
    """
    calls: list[ToolCall] = []
    prose: list[str] = []
    position = 0
    while opened := opening.search(text, position):
        if len(calls) >= MAX_CALLS:
            raise FormatError(f"more than {MAX_CALLS} calls in one reply")
        prose.append(text[position : opened.start()])
        found, position = content(text, opened.start())
        calls += found
        if not all(call.name for call in found):  # it could not be read
            prose.append(text[opened.start() : position])
    if not calls:
        return None
    prose.append(text[position:])
    said = "".join(prose)
    return ParsedAction(tuple(calls), (around.sub("", said) if around else said).strip())


def split_blocks(
    text: str, opening: re.Pattern[str], closing: re.Pattern[str]
) -> Iterator[tuple[str, bool, bool]]:
    """Yields the parts of a text that stand outside and inside of blocks, by turns.

    Args:
        text: The text.
        opening: The line at which a block begins, without its line end.
        closing: The line at which it ends.

    Yields:
        The part, with the line end before the next mark; whether it is a block; whether a mark
        stands behind it.
    """
    position, is_block = 0, False
    while mark := (closing if is_block else opening).search(text, position):
        yield text[position : mark.start()], is_block, True
        position, is_block = mark.end() + 1, not is_block
    yield text[position:], is_block, False
