"""A sandbox with files in it, as a toolset's calls see an episode."""

from dataclasses import dataclass
from typing import Any

from checks.toolset_scene import ToolScene

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools import get_toolset


@dataclass
class Scene(ToolScene):
    """A scene that calls the tools of a toolset by its name."""

    toolset: str = ""

    def call(self, tool: str, **arguments: Any) -> ToolResult:
        """Calls one tool."""
        return get_toolset(self.toolset).execute(ToolCall(tool, arguments, "call_7"), self)

    def told(self, tool: str, **arguments: Any) -> str:
        """Calls one tool, and returns what the policy is told."""
        return self.call(tool, **arguments).content
