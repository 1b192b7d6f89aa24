"""Actions of scripted agents: replies that carry calls of the tools of the env they play in."""

import base64
from dataclasses import dataclass, field, replace
from typing import Self

from coding_gym.action import Completion
from coding_gym.calls import ToolCall
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools import Toolset, get_toolset, tool_names
from coding_gym.tools.schemas import SHELLS, KnownTools


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Makes an agent's tool calls actions, and finds the tools that they need.

    Attributes:
        toolset: The env's toolset.
    """

    toolset: Toolset = field(default_factory=lambda: get_toolset("nano"))

    @classmethod
    def of(cls, episode: Episode) -> Self:
        """Makes one for an episode."""
        return cls(episode.toolset)

    def shell(self, command: str) -> str | None:
        """Returns the action that runs a shell command; None where no tool runs one."""
        tool, argument = KnownTools(self.toolset.schemas).shell() or ("", "")
        if tool not in SHELLS:  # a debugger takes a command too
            return None
        return Completion("", calls=[ToolCall(tool, {argument: command})])

    def applying(self, diff: str, agent: str) -> str:
        """Returns the action that applies a unified diff by a shell command.

        Args:
            diff: The diff.
            agent: Name of the agent, for the error.

        Raises:
            InvalidArgumentError: There is no such tool.
        """
        encoded = base64.b64encode(diff.encode("utf-8", "surrogateescape")).decode()
        command = f"echo {encoded} | base64 -d | git apply --whitespace=nowarn -"
        action = self.shell(command)
        if action is None:
            raise self.refusal(agent, "runs a shell command")
        return action

    def submission(self) -> list[str]:
        """Returns the action that submits, or none where there is no such tool.

        An agent that ends without one is stopped, and the tree is graded all the same.
        """
        call = self.toolset.submission
        for schema in self.toolset.schemas:
            if schema["function"]["name"] == call.name:
                required = schema["function"].get("parameters", {}).get("required", ())
                arguments = dict.fromkeys(required, "solved") | dict(call.arguments)
                return [Completion("", calls=[replace(call, arguments=arguments)])]
        return []

    def refusal(self, agent: str, needs: str) -> InvalidArgumentError:
        """Returns the error for an agent that misses a tool."""
        return InvalidArgumentError(
            f"agent {agent!r} needs a tool that {needs}; the toolset {self.toolset.name!r} has "
            f"{', '.join(tool_names(self.toolset))}"
        )
