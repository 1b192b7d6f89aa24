"""Actions of scripted agents: replies that carry calls of the tools of the env they play in."""

import base64
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from coding_gym.action import Completion
from coding_gym.calls import ToolCall
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools import Toolset, get_toolset, tool_names
from coding_gym.tools.formats import tells_format
from coding_gym.tools.formats.writing import write_call
from coding_gym.tools.schemas import SHELLS, KnownTools


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Makes an agent's tool calls actions, and finds the tools that they need.

    Attributes:
        toolset: The env's toolset.
        tool_format: How its calls are written, where the system prompt explains that.
    """

    toolset: Toolset = field(default_factory=lambda: get_toolset("nano"))
    tool_format: str = "auto"

    @classmethod
    def of(cls, episode: Episode) -> Self:
        """Makes one for an episode."""
        return cls(episode.toolset, episode.config.tool_format)

    def action(self, call: ToolCall) -> str:
        """Returns the action that makes a call: its text in the env's format, else the call."""
        if tells_format(self.tool_format):
            return write_call(self.tool_format, call)
        return Completion("", calls=[call])

    def read(self, path: str, first: int, last: int) -> str | None:
        """Returns the action that shows lines of a file; None where no tool does."""
        arguments: dict[str, dict[str, Any]] = {
            "view_file": {"path": path, "start_line": first, "end_line": last},
            "read_file": {"path": path, "start_line": first, "max_lines": last - first + 1},
            "str_replace_editor": {"command": "view", "path": path, "view_range": [first, last]},
        }
        command = f"sed -n '{first},{last}p' {shlex.quote(path)}"
        action = self._first(arguments)
        return self.shell(command) if action is None else action

    def edit(self, path: str, old: str, new: str) -> str | None:
        """Returns the action that replaces a text in a file; None where no tool does."""
        texts = {"path": path, "old_str": old, "new_str": new}
        return self._first(
            {
                "str_replace": texts,
                "edit": {"path": path, "old": old, "new": new},
                "str_replace_editor": {"command": "str_replace", **texts},
                "apply_patch": {"search": old, "replace": new, "file": path},
            }
        )

    def _first(self, arguments: Mapping[str, Mapping[str, Any]]) -> str | None:
        """Returns the action of the first tool that is there and takes its arguments."""
        for schema in self.toolset.schemas:
            name, known = schema["function"]["name"], schema["function"].get("parameters", {})
            if name in arguments and arguments[name].keys() <= known.get("properties", {}).keys():
                return self.action(ToolCall(name, arguments[name]))
        return None

    def shell(self, command: str) -> str | None:
        """Returns the action that runs a shell command; None where no tool runs one."""
        tool, argument = KnownTools(self.toolset.schemas).shell() or ("", "")
        if tool not in SHELLS:  # a debugger takes a command too
            return None
        return self.action(ToolCall(tool, {argument: command}))

    def applying(self, diff: str, agent: str, *, anew: bool = False) -> str:
        """Returns the action that applies a unified diff, by a tool for that or by a command.

        Args:
            diff: The diff.
            agent: Name of the agent, for the error.
            anew: Whether edits so far are taken back before.

        Raises:
            InvalidArgumentError: There is no such tool.
        """
        action = None if anew else self._first({"apply_patch": {"patch": diff}})
        if action is not None:
            return action
        command = _apply_command(diff)
        action = self.shell("git checkout -q -- . && " * anew + command)
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
    """Returns the command that has git apply a diff: as text, or encoded where it holds bytes."""
    apply = "git apply --whitespace=nowarn -"
    try:
        diff.encode()
    except UnicodeEncodeError:
        is_text = False
    else:
        is_text = diff.isprintable() or not set(diff) & {"\0", "\r"}
    if is_text and "\nEND\n" not in f"\n{diff}\n":
        return f"{apply} <<'END'\n{diff.removesuffix(chr(10))}\nEND"
    encoded = base64.b64encode(diff.encode("utf-8", "surrogateescape")).decode()
    return f"echo {encoded} | base64 -d | {apply}"
