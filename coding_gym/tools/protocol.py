"""What a toolset is: the tools a policy has, what it is told of them, how they answer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools.toolset import NoCall, ToolContext

if TYPE_CHECKING:
    from numpy.random import Generator


class Toolset(Protocol):
    """A set of tools under one name.

    It has no state: one instance serves every episode, and what one of them needs to remember is in
    `ToolContext.state`.

    What a policy gets wrong (an unknown tool, a missing argument, a failing command) is an
    answer; only `SandboxError` is raised, for failures of the machinery.
    """

    @property
    def name(self) -> str:
        """The name that ``toolset=`` takes."""
        ...

    @property
    def system_prompt(self) -> str:
        """What a policy is told before the task, without the tools' schemas."""
        ...

    def prompt(self, *, keeps_shell: bool) -> str:
        """Returns the system prompt; ``keeps_shell`` says that one shell runs all commands."""
        ...

    @property
    def schemas(self) -> tuple[Mapping[str, Any], ...]:
        """The tools as OpenAI function schemas."""
        ...

    @property
    def text_formats(self) -> tuple[str, ...]:
        """Tool formats that ``auto`` reads too, where this toolset's own way is no JSON."""
        ...

    def execute(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Runs one call and returns its answer, bounded in characters.

        Raises:
            SandboxError: The sandbox is closed or died.
        """
        ...

    def on_no_call(self, context: ToolContext) -> NoCall:
        """Returns what a reply without a tool call leads to.

        Raises:
            SandboxError: The sandbox is closed or died.
        """
        ...

    def sample_call(self, rng: "Generator") -> ToolCall:
        """Draws a valid call, for random agents and for ``action_space.sample()``."""
        ...


@runtime_checkable
class Lenient(Protocol):
    """A toolset that takes calls in other words than those of its schemas."""

    def meant(self, call: ToolCall) -> ToolCall:
        """Returns the call that this one is taken for, in the words of the schemas."""
        ...


def meant(call: ToolCall, toolset: Toolset) -> ToolCall:
    """Returns a call as a toolset takes it, without the arguments that its tool ignores.

    A call of an unknown tool, or one that lacks what its tool requires, stays as it is.
    """
    if isinstance(toolset, Lenient) and not call.error:
        call = toolset.meant(call)
    for schema in toolset.schemas:
        if schema["function"]["name"] == call.name:
            parameters = schema["function"].get("parameters", {})
            known, given = parameters.get("properties", {}), call.arguments
            takes_more = "properties" not in parameters or parameters.get("additionalProperties")
            if not takes_more and all(name in given for name in parameters.get("required", ())):
                read = {name: value for name, value in given.items() if name in known}
                return replace(call, arguments=read)
    return call


__all__ = ["Lenient", "NoCall", "ToolContext", "Toolset", "meant", "tool_names"]


def tool_names(toolset: Toolset) -> tuple[str, ...]:
    """Returns the names of a toolset's tools, in the order of its schemas."""
    return tuple(schema["function"]["name"] for schema in toolset.schemas)
