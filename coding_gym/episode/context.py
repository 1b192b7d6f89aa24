"""What the tools of an episode may touch."""

from dataclasses import dataclass, field
from typing import Any

from coding_gym.errors import PatchError
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.workspace import Template, is_changed


@dataclass(frozen=True, slots=True)
class Context:
    """The open sandbox of one episode; a `coding_gym.tools.ToolContext`.

    Attributes:
        sandbox: Where tools work.
        template: What the sandbox was opened from.
        command_timeout_s: Seconds that one tool call may take.
        state: What the toolset keeps of the episode, JSON values.
    """

    sandbox: Sandbox
    template: Template
    command_timeout_s: float
    state: dict[str, Any] = field(default_factory=dict)

    def is_changed(self) -> bool:
        """Whether the tree differs from the base."""
        try:
            return is_changed(self.sandbox, self.template)
        except PatchError:  # only a changed tree can be too much for a patch
            return True
