"""What one format is: how it is read, written and explained."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coding_gym.calls import ToolCall
from coding_gym.tools.formats.known_tools import KnownTools
from coding_gym.tools.formats.parsed import ParsedAction
from coding_gym.tools.formats.reading import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a text is to be read.

    Attributes:
        json: Reads the JSON in it.
        tools: The tools there are.
        forgives: Whether this is the second attempt, which takes what is broken but clear.
        exact: Whether only what the format itself writes counts: ``[strict]``.
        alone: Whether this format was chosen by name, so that no other one will be tried.
    """

    json: Reader
    tools: KnownTools
    forgives: bool = False
    exact: bool = False
    alone: bool = False


def all_tools(tools: KnownTools) -> tuple[str, ...]:
    """Returns the names of all tools, for formats that can call any of them."""
    return tools.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One way to write tool calls.

    Attributes:
        name: What ``tool_format`` takes.
        parse: Reads calls; None where the text holds none. Raises `FormatError` where it holds
            some that cannot be read.
        render: Writes calls.
        expected: What a reply that cannot be read is told, with an example, in one line.
        explained: What a model is told, before an example.
        mark: What shows that a text is in this format, where one piece of text does; else "".
        is_json: Whether calls are JSON, which carries ids and any argument.
        callable: Returns the names of the tools that can be called in it.
    """

    name: str
    parse: Callable[[str, Reading], ParsedAction | None]
    render: Callable[[Sequence[ToolCall], KnownTools], str]
    expected: str
    explained: str
    mark: str = ""
    is_json: bool = True
    callable: Callable[[KnownTools], tuple[str, ...]] = all_tools
