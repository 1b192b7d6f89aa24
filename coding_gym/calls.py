"""Tool calls of a policy, their results, requests to its model, and results of commands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coding_gym.json_record import JsonRecord

TOKEN_COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens")
"""The token counts of a `ModelCall`."""
SUMMED_COUNTS = TOKEN_COUNTS[:2]  # the cached tokens are part of the prompt

MAX_DEPTH = 64
TOO_DEEP = f"a value must be nested at most {MAX_DEPTH} levels deep"


@dataclass(frozen=True, slots=True)
class ToolCall(JsonRecord):
    """One call of one tool, as read from a policy's text.

    Attributes:
        name: Name of the requested tool; it need not be in the toolset.
        arguments: The arguments by name, JSON values.
        call_id: Id that links the call to the message of its result.
        error: The parse error of the arguments, or "".
        arguments_text: The string of the arguments in an OpenAI message; "" in every other format.
            Equality ignores this field, because white space in JSON has no meaning.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = ""
    error: str = ""
    arguments_text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ToolResult(JsonRecord):
    """The result of one tool call.

    Attributes:
        content: The text for the policy, already truncated.
        ok: Whether the tool succeeded; None if unknown, as for tools of a command-line agent.
        call_id: The id of the call.
        submitted: Whether this call submitted the repair and so ends the episode.
        duration_s: Wall time of the call, in seconds; recorded, never displayed to the policy.
    """

    content: str
    ok: bool | None = True
    call_id: str = ""
    submitted: bool = False
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall(JsonRecord):
    """One request to a model, as the server or the local model reports it.

    Attributes:
        prompt_tokens: Tokens of the prompt; None if the server reports neither number nor ids.
        completion_tokens: Tokens of the reply, reasoning included; None as for ``prompt_tokens``.
        cached_tokens: Tokens of the prompt in the server's cache; None if not reported.
        cost: Cost of the request, in the currency of the prices; None if unknown.
        finish_reason: The server's finish reason, such as ``"stop"`` or ``"length"``.
        duration_s: Wall time in seconds, retries included.
        num_retries: Number of retries of the request.
        prefix_length: In a record, the number of leading ids that the prompt has in common with the
            previous prompt and its reply.
        prompt_ids: The ids of the prompt; in a record, only the ids after the prefix. Empty if
            the server returns no ids.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    finish_reason: str = ""
    duration_s: float = 0.0
    num_retries: int = 0
    prefix_length: int = 0
    prompt_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The result of one command in a sandbox.

    Attributes:
        exit_code: The shell's exit status, 0 to 255; 128 + n after signal n, 124 after a timeout.
        output: Standard output and error, merged in order, decoded as UTF-8; invalid bytes become
            U+FFFD. Output longer than ``max_output_bytes`` is reduced to its head and its tail; a
            line between them states the number of omitted bytes.
        timed_out: Whether the command was killed at its time limit.
        truncated: Whether output was omitted.
        duration_s: Wall time in seconds.
        num_leftovers: Number of background processes that were killed at the end of the command.
        out_of_memory: Whether all processes were killed at the memory limit of the sandbox; the
            exit code is then 137.
        notes: Notices that a tool displays below the output, one line each.
    """

    exit_code: int
    output: str
    timed_out: bool = False
    truncated: bool = False
    duration_s: float = 0.0
    num_leftovers: int = 0
    out_of_memory: bool = False
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the command exited with 0 before its time limit."""
        return self.exit_code == 0 and not self.timed_out


def is_too_deep(value: Any) -> bool:
    """Returns whether a JSON value is nested more than `MAX_DEPTH` levels deep."""
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for group in level
            for item in (group.values() if isinstance(group, dict) else group)
            if isinstance(item, dict | list | tuple)
        ]
        if not level:
            return False
    return True
