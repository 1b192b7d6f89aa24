"""Actions of agents without a model: calls of the tools that an episode has."""

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
    """Converts tool calls to actions, and finds tools by their purpose.

    Attributes:
        toolset: The episode's toolset.
        tool_format: The episode's tool format.
    """

    toolset: Toolset
    tool_format: str

    @classmethod
    def of(cls, episode: Episode) -> Self:
        """Returns the tools of an episode."""
        return cls(episode.toolset, episode.tool_format)

    def action(self, call: ToolCall) -> str:
        """Returns a call as an action: as text if the system prompt explains the tool format.

        A call that the format cannot express is carried by a `Completion` without text.
        """
        if explains_format(self.tool_format) and call.name in self._callable():
            with suppress(InvalidArgumentError):
                text = write_call(call, self.tool_format)
                read = ReplyParser(self.tool_format, self.toolset.schemas).read(text)
                if [replace(each, call_id="") for each in read.calls] == [
                    replace(call, call_id="")
                ]:
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
        """Returns the action that runs a shell command; None without such a tool."""
        tool, argument = KnownTools(self.toolset.schemas).shell() or ("", "")
        if tool not in SHELLS:  # other tools have an argument "command" too
            return None
        return self.action(ToolCall(tool, {argument: command}))

    def applying(self, diff: str, agent: str) -> str:
        """Returns the action that applies a unified diff by a shell command.

        Args:
            diff: The diff.
            agent: Name of the agent, for the error.

        Raises:
            InvalidArgumentError: The toolset has no tool that runs a shell command.
        """
        action = self.shell(_apply_command(diff))
        if action is None:
            raise self.refusal(agent, "runs a shell command")
        return action

    def submission(self) -> list[str]:
        """Returns the action that submits; an empty list if the toolset has no such tool.

        The episode of an agent that ends without a submission is stopped and graded.
        """
        call = self.toolset.submission
        for schema in self.toolset.schemas:
            if schema["function"]["name"] == call.name:
                required = schema["function"].get("parameters", {}).get("required", ())
                arguments = dict.fromkeys(required, "solved") | dict(call.arguments)
                return [self.action(replace(call, arguments=arguments))]
        return []

    def refusal(self, agent: str, needs: str) -> InvalidArgumentError:
        """Returns the error for an agent whose tool is missing."""
        return InvalidArgumentError(
            f"agent {agent!r} needs a tool that {needs}; the toolset {self.toolset.name!r} has "
            f"{', '.join(tool_names(self.toolset))}"
        )


def _apply_command(diff: str) -> str:
    """Returns the command that applies a diff; a here-document if the diff is plain UTF-8."""
    lines = diff.split("\n")
    is_plain = diff.endswith("\n") and _END_OF_DIFF not in lines and not set(diff) & set("\r\0`")
    if is_plain and diff == diff.encode("utf-8", "replace").decode():
        return f"git apply --whitespace=nowarn - <<'{_END_OF_DIFF}'\n{diff}{_END_OF_DIFF}"
    encoded = base64.b64encode(diff.encode("utf-8", "surrogateescape")).decode()
    return f"echo {encoded} | base64 -d | git apply --whitespace=nowarn -"
