"""Actions of scripted agents, in the tools and the tool format of the env that they play in."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from coding_gym.calls import ToolCall
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools import Toolset, get_toolset
from coding_gym.tools.commands import SHELLS
from coding_gym.tools.formats import render_calls
from coding_gym.tools.formats.format import KnownTools


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Writes an agent's tool calls as actions, and finds the tools that they need.

    Attributes:
        toolset: The env's toolset.
        tool_format: The env's tool format.
    """

    toolset: Toolset = field(default_factory=lambda: get_toolset("nano"))
    tool_format: str = "auto"

    @classmethod
    def of(cls, episode: Episode) -> Self:
        """Makes one for an episode."""
        return cls(episode.toolset, episode.tool_format)

    def shell(self, command: str) -> str | None:
        """Returns the action that runs a shell command; None where no tool runs one."""
        taker = KnownTools(self.toolset.schemas).shell()
        is_shell = taker is not None and taker[0] in SHELLS  # a debugger takes a command too
        return self._action_of(taker if is_shell else None, command)

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
        if call.name not in self._schemas:
            return []
        required = set(self._schemas[call.name].get("required", ()))
        missing = required - call.arguments.keys()
        arguments = {**call.arguments, **dict.fromkeys(sorted(missing), "solved")}
        action = self._action(ToolCall(call.name, arguments))
        return [] if action is None else [action]

    def refusal(self, agent: str, needs: str) -> InvalidArgumentError:
        """Returns the error for an agent that misses a tool."""
        return InvalidArgumentError(
            f"agent {agent!r} needs a tool that {needs}; the toolset {self.toolset.name!r} has "
            f"{', '.join(self._schemas)}, called in the tool format {self.tool_format!r}"
        )

    @property
    def _schemas(self) -> dict[str, Mapping[str, Any]]:
        """Each tool's parameters, by its name."""
        functions = (schema["function"] for schema in self.toolset.schemas)
        return {function["name"]: function.get("parameters", {}) for function in functions}

    def _action_of(self, taker: tuple[str, str] | None, value: str) -> str | None:
        """The call that gives a value to a tool's argument; None where there is no such tool."""
        return None if taker is None else self._action(ToolCall(taker[0], {taker[1]: value}))

    def _action(self, call: ToolCall) -> str | None:
        """The call in the env's format; None where this cannot carry it."""
        try:
            return render_calls([call], self.tool_format, self.toolset.schemas)
        except InvalidArgumentError:
            return None
