"""Actions of scripted agents: replies that carry calls of the tools of the env they play in."""

import base64
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

from coding_gym.action import Completion
from coding_gym.calls import ToolCall
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools import Toolset, tool_names
from coding_gym.tools.formats import ReplyParser, check_format, explains_format, write_call
from coding_gym.tools.schemas import SHELLS, KnownTools, Schema

_END_OF_DIFF = "END_OF_DIFF"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Makes an agent's tool calls actions, and finds the tools that they need.

    Attributes:
        toolset: The env's toolset.
        tool_format: How calls are written where the system prompt explains it.
    """

    toolset: Toolset
    tool_format: str

    @classmethod
    def of(cls, episode: Episode) -> Self:
        """Makes one for an episode."""
        return cls(episode.toolset, episode.tool_format)

    def action(self, call: ToolCall) -> str:
        """Returns a call as an action, written in the format that the system prompt explains.

        A call that cannot be read again from its text is an action with the call itself.
        """
        if explains_format(self.tool_format) and call.name in self._callable():
            with suppress(InvalidArgumentError):
                text = write_call(call, self.tool_format)
                read = ReplyParser(self.tool_format, self.toolset.schemas).read(text)
                if [replace(one, call_id="") for one in read.calls] == [replace(call, call_id="")]:
                    return text
        return Completion("", calls=[call])

    def _callable(self) -> tuple[str, ...]:
        return check_format(self.tool_format, self.toolset.schemas)

    def callable_schemas(self) -> list[Schema]:
        """Returns the tools that the format can call."""
        is_explained = explains_format(self.tool_format)
        names = self._callable() if is_explained else tool_names(self.toolset)
        return [each for each in self.toolset.schemas if each["function"]["name"] in names]

    def shell(self, command: str) -> str | None:
        """Returns the action that runs a shell command; None where no tool runs one."""
        tool, argument = KnownTools(self.toolset.schemas).shell() or ("", "")
        if tool not in SHELLS:  # a debugger takes a command too
            return None
        return self.action(ToolCall(tool, {argument: command}))

    def applying(self, diff: str, agent: str) -> str:
        """Returns the action that applies a unified diff by a shell command.

        Args:
            diff: The diff.
            agent: Name of the agent, for the error.

        Raises:
            InvalidArgumentError: There is no such tool.
        """
        action = self.shell(_apply_command(diff))
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
                return [self.action(replace(call, arguments=arguments))]
        return []

    def refusal(self, agent: str, needs: str) -> InvalidArgumentError:
        """Returns the error for an agent that misses a tool."""
        return InvalidArgumentError(
            f"agent {agent!r} needs a tool that {needs}; the toolset {self.toolset.name!r} has "
            f"{', '.join(tool_names(self.toolset))}"
        )


def _apply_command(diff: str) -> str:
    """Returns the command that applies a diff: readable where the diff is lines of UTF-8."""
    lines = diff.split("\n")
    is_plain = diff.endswith("\n") and _END_OF_DIFF not in lines and not set(diff) & set("\r\0`")
    if is_plain and diff == diff.encode("utf-8", "replace").decode():
        return f"git apply --whitespace=nowarn - <<'{_END_OF_DIFF}'\n{diff}{_END_OF_DIFF}"
    encoded = base64.b64encode(diff.encode("utf-8", "surrogateescape")).decode()
    return f"echo {encoded} | base64 -d | git apply --whitespace=nowarn -"
