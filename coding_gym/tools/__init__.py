"""Toolsets: sets of tools that a policy can call, registered by name."""

from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.bash import BASH
from coding_gym.tools.codex import CODEX
from coding_gym.tools.compact import COMPACT
from coding_gym.tools.editor import EDITOR
from coding_gym.tools.heavy import HEAVY
from coding_gym.tools.nano import NANO
from coding_gym.tools.thesis import THESIS
from coding_gym.tools.toolset import SUBMIT, Refusal, Tool, ToolContext, Toolset

__all__ = [
    "SUBMIT",
    "Refusal",
    "Tool",
    "ToolContext",
    "Toolset",
    "get_toolset",
    "register_toolset",
    "toolset_names",
]

_TOOLSETS = {
    toolset.name: toolset for toolset in (BASH, CODEX, COMPACT, EDITOR, HEAVY, NANO, THESIS)
}


def register_toolset(toolset: Toolset) -> None:
    """Registers a toolset under its name.

    Raises:
        InvalidArgumentError: Another toolset has this name, or `Tool.check_schema` refuses a tool.
    """
    for tool in toolset.tools:
        tool.check_schema()
    if _TOOLSETS.setdefault(toolset.name, toolset) is not toolset:
        raise InvalidArgumentError(
            f"the name of a toolset must be unused, got {toolset.name!r}; use another name"
        )


def get_toolset(name: str) -> Toolset:
    """Returns the toolset that is registered under a name.

    Raises:
        UnknownNameError: No toolset has this name.
    """
    if name not in toolset_names():  # a lookup in the dictionary fails for a list
        raise unknown_name("toolset", name, _TOOLSETS)
    return _TOOLSETS[name]


def toolset_names() -> tuple[str, ...]:
    """Returns the names of all toolsets, sorted."""
    return tuple(sorted(_TOOLSETS))
