"""Tools that a policy can call: toolsets by name, and the formats that calls are written in."""

from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.nano import NanoToolset
from coding_gym.tools.protocol import NoCall, ToolContext, Toolset, tool_names

__all__ = [
    "NoCall",
    "ToolContext",
    "Toolset",
    "get_toolset",
    "register_toolset",
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
    """Returns the toolset called ``name``.

    Raises:
        UnknownNameError: There is none.
    """
    if name not in _TOOLSETS:
        raise unknown_name("toolset", name, _TOOLSETS)
    return _TOOLSETS[name]


def toolset_names() -> tuple[str, ...]:
    """Returns the names of all toolsets, sorted."""
    return tuple(sorted(_TOOLSETS))


register_toolset(NanoToolset())
