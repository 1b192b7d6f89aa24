"""A toolset with only some of its tools: ``"editor[bash,submit]"``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coding_gym.arguments import unknown_name
from coding_gym.calls import ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.answers import name_of, refusal
from coding_gym.tools.protocol import Lenient, NoCall, ToolContext, Toolset, tool_names

if TYPE_CHECKING:
    from numpy.random import Generator

_MAX_DRAWS = 1000


class ToolSubset:
    """Some tools of a toolset, in the order of its schemas; the others are unknown tools.

    Args:
        toolset: The whole.
        tools: Names of the tools that stay.

    Raises:
        InvalidArgumentError: None is left.
        UnknownNameError: One is not there.
    """

    def __init__(self, toolset: Toolset, tools: Sequence[str]) -> None:
        known = tool_names(toolset)
        for tool in tools:
            if tool not in known:
                raise unknown_name(f"tool of the toolset {toolset.name}", tool, known)
        if not tools:
            raise InvalidArgumentError(
                f"name at least one tool of {toolset.name}: {', '.join(known)}"
            )
        self._whole = toolset
        self._tools = tuple(tool for tool in known if tool in tools)
        self.name = f"{toolset.name}[{','.join(self._tools)}]"
        self.text_formats = toolset.text_formats
        self.schemas: tuple[Mapping[str, Any], ...] = tuple(
            schema for schema in toolset.schemas if schema["function"]["name"] in self._tools
        )
        self.system_prompt = self._with_notice(toolset.system_prompt)

    def prompt(self, *, keeps_shell: bool) -> str:
        """Returns the whole's system prompt, and which tools of it are there."""
        return self._with_notice(self._whole.prompt(keeps_shell=keeps_shell))

    def meant(self, call: ToolCall) -> ToolCall:
        """Returns a call of one of the tools, by whatever name, as the whole takes it."""
        meant = self._whole.meant(call) if isinstance(self._whole, Lenient) else call
        return meant if meant.name in self._tools else call

    def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Runs a call of one of the tools."""
        call = self.meant(call)
        if call.name not in self._tools and not call.error:
            return refusal(call, f"unknown tool: {name_of(call.name)}")
        return self._whole.execute(call, context)

    def on_no_call(self, context: ToolContext) -> NoCall:
        """Answers as the whole does, and says which tools are there where it names others."""
        reaction = self._whole.on_no_call(context)
        if any(name in reaction.reply for name in set(tool_names(self._whole)) - set(self._tools)):
            return replace(reaction, reply=f"{reaction.reply} {self._notice()}")
        return reaction

    def sample_call(self, rng: "Generator") -> ToolCall:
        """Draws a valid call of one of the tools."""
        for _ in range(_MAX_DRAWS):
            call = self._whole.sample_call(rng)
            if call.name in self._tools:
                return call
        return ToolCall(self._tools[0])  # one that its toolset never draws

    def _with_notice(self, prompt: str) -> str:
        if self._tools == tool_names(self._whole):
            return prompt
        return f"{prompt.rstrip()}\n\n{self._notice()}\n"

    def _notice(self) -> str:
        return f"Of these tools only the following are there: {', '.join(self._tools)}."
