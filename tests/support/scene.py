"""A sandbox with files in it, as a toolset's calls see an episode."""

from dataclasses import dataclass, field
from typing import Any

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.sandbox import Sandbox
from coding_gym.tools import get_toolset


@dataclass
class Scene:
    """A `coding_gym.tools.ToolContext` without an episode around it.

    Attributes:
        sandbox: Where the calls work.
        toolset: Name of the toolset whose tools are called.
        changed: What `is_changed` says.
    """

    sandbox: Sandbox
    toolset: str
    command_timeout_s: float = 60.0
    changed: bool = False
    state: dict[str, Any] = field(default_factory=dict)

    def is_changed(self) -> bool:
        return self.changed

    def call(self, tool: str, **arguments: Any) -> ToolResult:
        """Calls one tool."""
        return get_toolset(self.toolset).execute(ToolCall(tool, arguments, "call_7"), self)

    def told(self, tool: str, **arguments: Any) -> str:
        """Calls one tool, and returns what the policy is told."""
        return self.call(tool, **arguments).content
