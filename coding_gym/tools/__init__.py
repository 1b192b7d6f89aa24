"""Tools that a policy can call: toolsets by name, and the formats that calls are written in."""

from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.bash import BASH
from coding_gym.tools.codex import CODEX
from coding_gym.tools.editor import EDITOR
from coding_gym.tools.heavy import HEAVY
from coding_gym.tools.nano import NANO
from coding_gym.tools.thesis import THESIS
from coding_gym.tools.toolset import (
    SUBMIT,
    NoCall,
    Refusal,
    Tool,
    ToolContext,
    Toolset,
    nudge,
    subset,
    tool_names,
)

__all__ = [
    "SUBMIT",
    "NoCall",
    "Refusal",
    "Tool",
    "ToolContext",
    "Toolset",
    "get_toolset",
    "nudge",
    "register_toolset",
    "subset",
    "tool_names",
    "toolset_names",
]

_TOOLSETS: dict[str, Toolset] = {}


def register_toolset(toolset: Toolset) -> None:
    """Makes a toolset known by its name.

    Raises:
        InvalidArgumentError: Another toolset has that name.
    """
    if _TOOLSETS.setdefault(toolset.name, toolset) is not toolset:
        raise InvalidArgumentError(f"there is already a toolset named {toolset.name!r}")


def get_toolset(name: str) -> Toolset:
    """Returns a toolset.

    Args:
        name: Its name; with tools in brackets only these of it, as in ``"nano[shell,submit]"``.

    Raises:
        UnknownNameError: There is none, or no such tool in it.
        InvalidArgumentError: The name is no text, or no tool is named in the brackets.
    """
    if not isinstance(name, str):
        raise InvalidArgumentError(f"toolset must be a name, such as 'nano', got {name!r}")
    whole, bracket, tools = name.partition("[")
    if whole not in _TOOLSETS or (bracket and not tools.endswith("]")):
        raise unknown_name("toolset", name, _TOOLSETS)
    if not bracket:
        return _TOOLSETS[whole]
    chosen = [tool.strip() for tool in tools[:-1].split(",")]
    return subset(_TOOLSETS[whole], [tool for tool in chosen if tool])


def toolset_names() -> tuple[str, ...]:
    """Returns the names of all toolsets, sorted."""
    return tuple(sorted(_TOOLSETS))


for _toolset in (BASH, CODEX, EDITOR, HEAVY, NANO, THESIS):
    register_toolset(_toolset)
