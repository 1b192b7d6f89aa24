"""Answers of tools, and refusals: faults of the model, said inside a tool and answered outside."""

from collections.abc import Callable, Mapping

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.tools.files import shown
from coding_gym.tools.protocol import ToolContext

_MAX_QUOTED_CHARS = 200
_MAX_REFUSAL_CHARS = 8000


class Refusal(Exception):
    """What a tool does not do, and why; its toolset makes an answer of it."""


def answer(call: ToolCall, content: str, *, ok: bool = True, raw: str = "") -> ToolResult:
    """Returns the answer to a call.

    Args:
        call: The call.
        content: What the policy reads, already bounded.
        ok: Whether the tool did what was asked.
        raw: What the sandbox gave, where ``content`` may not have it all.
    """
    kept = "" if raw.strip() in content else shown(raw)
    return ToolResult(shown(content), ok=ok, call_id=call.call_id, raw=kept)


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


def submitted(call: ToolCall, content: str = "submitted") -> ToolResult:
    """Returns the answer to a call that ends the episode."""
    return ToolResult(shown(content), call_id=call.call_id, submitted=True)


def quoted(text: object) -> str:
    """Returns a value as it may stand in an answer: on one line, and short.

    >>> quoted("a" * 1000)[-6:]
    "aaaa…'"
    """
    whole = repr(text)
    if len(whole) <= _MAX_QUOTED_CHARS:
        return whole
    return f"{whole[: _MAX_QUOTED_CHARS - 2]}…{whole[-1]}"


def name_of(path: str) -> str:
    """Returns a path as it may stand in an answer."""
    plain = path if len(path) <= _MAX_QUOTED_CHARS else f"{path[:_MAX_QUOTED_CHARS]}…"
    return shown(plain.replace("\0", "\\0").replace("\n", "\\n"))
