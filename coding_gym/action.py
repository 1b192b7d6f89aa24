"""Actions that ``step`` takes: plain text, a `Completion`, or a request to stop."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

from coding_gym.calls import TOO_DEEP, ModelCall, ToolCall, is_too_deep
from coding_gym.errors import InvalidArgumentError


class Completion(str):
    """A policy's reply with its sampled tokens and, if already parsed, its tool calls.

    A plain ``str`` works everywhere a `Completion` does. Without ``token_ids`` the tokenizer
    encodes the text, and the turn in the trajectory has ``exact`` False. The first argument is the
    text of the reply, without the calls in ``calls``; the other arguments become attributes.

    Attributes:
        token_ids: The sampled ids, in order; empty if unknown.
        logprobs: One log-probability per id (natural logarithm), or None.
        calls: The calls, if a server or a trainer has parsed them; None to parse the text.
        weight_version: Version of the weights that sampled the reply, as text; None if unknown.
        reasoning: The reasoning, if a server has separated it from the text.
        is_cut: Whether a length limit truncated the reply.
        model_call: The request to the model that returned the reply, or None.

    Raises:
        InvalidArgumentError: The numbers of ids and log-probabilities differ, a log-probability is
            not finite, or a call is not a `ToolCall` or has arguments that are not JSON.
            Models can produce calls with empty names, NaN, infinity or deep nesting: these are
            accepted here, and ``step`` reports them as format errors.
    """

    __slots__ = (
        "calls",
        "is_cut",
        "logprobs",
        "model_call",
        "reasoning",
        "token_ids",
        "weight_version",
    )

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    calls: tuple[ToolCall, ...] | None
    weight_version: str | None
    reasoning: str
    is_cut: bool
    model_call: ModelCall | None

    def __new__(
        cls,
        text: str,
        token_ids: Sequence[int] = (),
        logprobs: Sequence[float] | None = None,
        calls: Sequence[ToolCall] | None = None,
        weight_version: int | str | None = None,
        reasoning: str = "",
        is_cut: bool = False,
        model_call: ModelCall | None = None,
    ) -> Self:
        """Creates the reply; the class documents the arguments."""
        if logprobs is not None and len(logprobs) != len(token_ids):
            raise InvalidArgumentError(
                f"logprobs must have one entry per token id ({len(token_ids)}), got {len(logprobs)}"
            )
        self = super().__new__(cls, text)
        self.token_ids = tuple(map(int, token_ids))
        self.logprobs = None if logprobs is None else tuple(map(float, logprobs))
        for value in self.logprobs or ():
            if not math.isfinite(value):
                raise InvalidArgumentError(f"logprobs must be finite numbers, got {value}")
        self.calls = None if calls is None else tuple(map(_valid_call, calls))
        self.weight_version = None if weight_version is None else str(weight_version)
        self.reasoning = reasoning
        self.is_cut = is_cut
        self.model_call = model_call
        return self

    @property
    def exact(self) -> bool:
        """Whether ``token_ids`` are the ids of the whole reply; True for an empty reply."""
        return bool(self.token_ids) or not (self or self.calls or self.reasoning)

    @property
    def full_text(self) -> str:
        """Reasoning, reply text, and a JSON line per call; encoded if ``token_ids`` is empty."""
        calls = [{"name": c.name, "arguments": dict(c.arguments)} for c in self.calls or ()]
        return "\n".join(filter(None, (self.reasoning, str(self), *map(json.dumps, calls))))

    def replaced(self, text: str, **attributes: Any) -> Self:
        """Returns a copy with this text and these attributes; other attributes are kept."""
        _, current = self.__getnewargs_ex__()
        return type(self)(text, **(current | attributes))

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (str(self),), {name: getattr(self, name) for name in self.__slots__}


class Stop(str):
    """An action of the caller that ends the episode; the current tree is graded.

    The text of a `Stop` is the caller's reason, which the trajectory records.
    """

    __slots__ = ()


def _valid_call(call: ToolCall) -> ToolCall:
    """Returns the call, or a call with an error if the arguments are nested too deeply.

    Raises:
        InvalidArgumentError: The call is not a `ToolCall` with JSON values.
    """
    is_call = isinstance(call, ToolCall) and isinstance(call.name, str)
    if not is_call or not isinstance(call.arguments, Mapping):
        raise InvalidArgumentError(
            f"calls must be ToolCalls with a name and arguments, got {call!r:.80}"
        )
    arguments = dict(call.arguments)
    try:
        json.dumps(arguments, sort_keys=True)  # as `Usage.note_call` does
    except RecursionError:
        is_deep = True
    except (TypeError, ValueError) as problem:
        raise InvalidArgumentError(
            f"the arguments of {call.name!r:.80} must be JSON values: {problem}"
        ) from None
    else:
        is_deep = is_too_deep(arguments)
    return ToolCall("", call_id=call.call_id, error=TOO_DEEP) if is_deep else call
