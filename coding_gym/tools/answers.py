"""Answers of tools, and refusals: faults of the model, said inside a tool and answered outside."""

from collections.abc import Callable, Mapping

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools.toolset import Refusal, ToolContext, answer, name_of, quoted, submitted

__all__ = ["Refusal", "answer", "dispatched", "name_of", "quoted", "refusal", "submitted"]

_MAX_REFUSAL_CHARS = 8000


def refusal(call: ToolCall, content: str) -> ToolResult:
    """Returns the answer to a call that did nothing."""
    return answer(call, content, ok=False)


def dispatched(
    tools: Mapping[str, Callable[[ToolCall, ToolContext], ToolResult]],
    call: ToolCall,
    context: ToolContext,
    error: str = "Error",
) -> ToolResult:
    """Returns the answer of the tool that a call names, or why there is none.

    Args:
        tools: By name, what answers a call, or raises `Refusal`.
        call: The call.
        context: The episode.
        error: What refusals begin with.
    """
    if call.error:
        return refusal(call, f"{error}: the arguments are no JSON: {call.error:.300}")
    if call.name not in tools:
        known = ", ".join(tools)
        return refusal(call, f"{error}: unknown tool: {name_of(call.name)}; there are {known}")
    try:
        return tools[call.name](call, context)
    except Refusal as why:
        return refusal(call, f"{error}: {why!s:.{_MAX_REFUSAL_CHARS}}")
