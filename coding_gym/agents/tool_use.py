"""Actions of agents without a model: calls of the tools that an episode has."""

import base64
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from coding_gym.action import Completion
from coding_gym.calls import ToolCall
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools import tool_names
from coding_gym.tools.formats import ReplyParser, check_format, explains_format, write_call
from coding_gym.tools.schemas import SHELLS, KnownTools

_END_OF_DIFF = "END_OF_DIFF"


class ToolUse:
    """Converts tool calls to actions of an episode, and finds tools by their purpose."""

    def __init__(self, episode: Episode) -> None:
        self._toolset, self._format = episode.toolset, episode.tool_format
        self._is_explained = explains_format(self._format)
        names = tool_names(self._toolset)
        if self._is_explained:
            names = check_format(self._format, self._toolset.schemas)
        self._callable = names  # in the episode's tool format

    def action(self, call: ToolCall) -> str:
        """Returns a call as an action: as text if the system prompt explains the tool format.

        A call that the format cannot express is carried by a `Completion` without text.
        """
        if self._is_explained and call.name in self._callable:
            with suppress(InvalidArgumentError):
                text = write_call(call, self._format)
                read = ReplyParser(self._format, self._toolset.schemas).read(text)
                if [replace(each, call_id="") for each in read.calls] == [call]:
                    return text
        return Completion("", calls=[call])

    def shell(self, command: str) -> str:
        """Returns the action that runs a shell command.

        Raises:
            InvalidArgumentError: The toolset has no tool for it.
        """
        tool, argument = KnownTools(self._toolset.schemas).shell() or ("", "")
        if tool not in SHELLS:  # other tools have an argument "command" too
            raise InvalidArgumentError(
                f"the agent needs a tool that runs a shell command; the toolset "
                f"{self._toolset.name!r} has {', '.join(tool_names(self._toolset))}"
            )
        return self.action(ToolCall(tool, {argument: command}))

    def applying(self, diff: str) -> str:
        """Returns the action that applies a unified diff by a shell command; errors of `shell`."""
        return self.shell(_apply_command(diff))

    def submission(self) -> list[str]:
        """Returns the action that submits; an empty list if the toolset has no such tool.

        The episode of an agent that ends without a submission is stopped and graded.
        """
        call = self._toolset.submission
        return [self.action(call)] if call.name in tool_names(self._toolset) else []


def gold(episode: Episode) -> Iterator[str]:
    """Yields the actions that apply the gold patch by a shell command, and submit.

    Raises:
        InvalidArgumentError: No tool of the toolset runs a shell command.
    """
    tools = ToolUse(episode)
    yield tools.applying(episode.task.gold_patch)
    yield from tools.submission()


def _apply_command(diff: str) -> str:
    """Returns the command that applies a diff; a here-document if the diff is plain UTF-8."""
    lines = diff.split("\n")
    is_plain = diff.endswith("\n") and _END_OF_DIFF not in lines and not set(diff) & set("\r\0`")
    if is_plain and diff == diff.encode("utf-8", "replace").decode():
        return f"git apply --whitespace=nowarn - <<'{_END_OF_DIFF}'\n{diff}{_END_OF_DIFF}"
    encoded = base64.b64encode(diff.encode("utf-8", "surrogateescape")).decode()
    return f"echo {encoded} | base64 -d | git apply --whitespace=nowarn -"
