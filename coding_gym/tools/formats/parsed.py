"""What reading a policy's text gives."""

from dataclasses import dataclass

from coding_gym.calls import ToolCall


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """A policy's reply, taken apart.

    Attributes:
        calls: The tool calls in order, each with an id that no other of them has. A call whose
            arguments could not be read has its ``error`` set.
        text: What the policy said beside the calls, its thoughts included.
        error: Where it seems to have tried a call and none could be read, one line that says why
            and what was expected; else "".
    """

    calls: tuple[ToolCall, ...] = ()
    text: str = ""
    error: str = ""


class FormatError(ValueError):
    """Text is in a format but cannot be read. Never leaves this package's parsing."""
