"""Tools that a policy can call: toolsets by name, and the formats that calls are written in."""

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
        InvalidArgumentError: The name is taken, or the parameters of a tool are not a schema.
    """
    for tool in toolset.tools:
        tool.check_schema()
    if _TOOLSETS.setdefault(toolset.name, toolset) is not toolset:
        raise InvalidArgumentError(f"there is already a toolset named {toolset.name!r}")


def get_toolset(name: str) -> Toolset:
    """Returns the toolset of a name.

    Raises:
        UnknownNameError: There is no such toolset.
    """
    if name not in toolset_names():  # a value such as a list has no hash
        raise unknown_name("toolset", name, _TOOLSETS)
    return _TOOLSETS[name]


def toolset_names() -> tuple[str, ...]:
    """Returns the names of all toolsets, sorted."""
    return tuple(sorted(_TOOLSETS))
