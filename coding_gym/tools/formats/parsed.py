"""What reading a policy's text gives."""

from dataclasses import dataclass

from coding_gym.calls import ToolCall


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """A policy's reply, taken apart.

    Attributes:
        calls: The tool calls in order, each with an id that no other of them has. A call whose
            arguments could not be read has its ``error`` set.
        text: What the policy said beside the calls, the ``content`` of an OpenAI message. A
            ``<think>`` block of plain text stays in it.
        reasoning: The ``reasoning_content`` or ``reasoning`` of an OpenAI message; "" else.
        error: Where it seems to have tried a call and none could be read, one line that says why
            and what was expected; else "".
    """

    calls: tuple[ToolCall, ...] = ()
    text: str = ""
    error: str = ""
    reasoning: str = ""


class FormatError(ValueError):
    """Text is in a format but cannot be read. Never leaves this package's parsing."""
