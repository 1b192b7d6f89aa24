"""A chat model's reply, read from a server's JSON, and its cost."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coding_gym.action import Completion
from coding_gym.agents.model_errors import INVALID, ModelError, model_error
from coding_gym.arguments import is_number
from coding_gym.episode import transcript
from coding_gym.json_record import JsonRecord
from coding_gym.tools.formats import ParsedAction, message_calls
from coding_gym.trajectory import Message, ModelCall

_MESSAGE_KEYS = ("content", "reasoning_content", "reasoning", "tool_calls")


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply.

    Attributes:
        action: The reply as an argument of `Episode.step`.
        call: Token counts, cost and duration of the request.
        prompt_ids: The ids of the prompt; empty if the server does not return them.
    """

    action: Completion
    call: ModelCall
    prompt_ids: tuple[int, ...]

    @property
    def message(self) -> Message:
        """The reply as a message in OpenAI's form."""
        action = self.action
        parsed = ParsedAction(action.calls or (), action.strip(), reasoning=action.reasoning)
        return transcript.assistant_message(str(action), parsed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices(JsonRecord):
    """Prices per million tokens, in one currency.

    Attributes:
        input: Tokens of prompts.
        output: Tokens of replies, reasoning included.
        cached_input: Tokens of prompts that the server read from its cache; by default the price of
            ``input``.
    """

    input: float
    output: float
    cached_input: float | None = None

    def cost(self, prompt: int, completion: int, cached: int) -> float:
        """Returns the cost of a request; the ``cached`` tokens are part of ``prompt``."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        uncached = prompt - cached
        return (uncached * self.input + cached * cached_price + completion * self.output) / 1e6


def read_reply(
    data: Any, prices: Prices | None = None, duration_s: float = 0.0, num_retries: int = 0
) -> Reply:
    """Returns the reply in a response.

    Token ids are read from the fields of vLLM, SGLang and llama.cpp; llama.cpp returns no ids of
    prompts.

    Args:
        data: The JSON of a chat completion.
        prices: Prices for the cost, if the response has no cost.
        duration_s: Wall time of the request in seconds, retries included.
        num_retries: Number of retries of the request.

    Raises:
        ModelError: The response has no message, or a content policy withheld it.
    """
    try:
        choice = data["choices"][0]
        message = {k: choice["message"][k] for k in _MESSAGE_KEYS if choice["message"].get(k)}
    except (TypeError, KeyError, IndexError, AttributeError):
        error = data.get("error") if isinstance(data, Mapping) else None
        if error:  # some proxies report errors with status 200
            code = error.get("code") if isinstance(error, Mapping) else None
            status = code if isinstance(code, int) else INVALID[0]
            raise model_error(status, json.dumps(error, default=str)) from None
        raise ModelError(f"the response must have a message, got {data!r}") from None
    reason = str(choice.get("finish_reason") or "")
    if reason == "content_filter":
        raise ModelError("the server's content policy withheld the reply", "refused")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    calls = message_calls(message | {"tool_calls": _list(message.get("tool_calls"))})
    prompt_ids = _ids(data.get("prompt_token_ids")) or _ids(choice.get("prompt_token_ids"))
    ids = _ids(choice.get("token_ids")) or _ids(choice.get("response_token_ids"))
    ids = ids or _meta_ids(choice) or _ids([entry.get("id") for entry in _entries(choice)])
    action = Completion(
        content_text(message.get("content")),
        ids,
        _logprobs(choice, len(ids)) if ids else None,
        calls or None,
        reasoning=reasoning if isinstance(reasoning, str) else "",
        is_cut=reason == "length",
    )
    call = ModelCall(
        **_usage(data.get("usage"), prices, len(prompt_ids), len(ids)),
        finish_reason=reason,
        duration_s=duration_s,
        num_retries=num_retries,
    )
    return Reply(action, call, prompt_ids)


def _usage(usage: Any, prices: Prices | None, num_prompt_ids: int, num_ids: int) -> dict[str, Any]:
    """Returns the token counts and the cost of a request; None if unknown."""
    usage = usage if isinstance(usage, Mapping) else {}
    prompt, completion = map(_count, map(usage.get, ("prompt_tokens", "completion_tokens")))
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    cost = _number(usage.get("cost"))
    if cost is None and prices is not None:
        cost = prices.cost(prompt or num_prompt_ids, completion or num_ids, cached or 0)
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": cached}
    return {**counts, "cost": cost}


def _number(value: Any) -> Any:
    """Returns the value if it is a finite number of at least 0, else None."""
    return value if is_number(value) and 0 <= value < math.inf else None


def _count(value: Any) -> int | None:
    """Returns the value as an integer if it is a finite number of at least 0, else None."""
    number = _number(value)
    return None if number is None else int(number)


def _ids(value: Any) -> tuple[int, ...]:
    """Returns the value as token ids if it is a list of integers, else ()."""
    is_list = isinstance(value, Sequence) and all(type(token) is int for token in value)
    return tuple(value) if is_list else ()


def content_text(content: Any) -> str:
    """Returns the text of a message's content, a text or a list of parts; "" for other values."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in _list(content) if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))


def _meta_ids(choice: Mapping[str, Any]) -> tuple[int, ...]:
    """Returns the token ids in SGLang's entries ``[logprob, id, text]``."""
    meta_info = choice.get("meta_info")
    entries = meta_info.get("output_token_logprobs") if isinstance(meta_info, Mapping) else None
    return _ids([_list(entry)[1] if len(_list(entry)) > 1 else None for entry in _list(entries)])


def _logprobs(choice: Mapping[str, Any], num_ids: int) -> list[float] | None:
    """Returns one log-probability per sampled id; None if one is missing or not finite."""
    values = [entry.get("logprob") for entry in _entries(choice)]
    is_complete = len(values) == num_ids and all(is_number(v) and math.isfinite(v) for v in values)
    return values if is_complete else None


def _entries(choice: Mapping[str, Any]) -> Sequence[Any]:
    """Returns the entries of a choice's ``logprobs.content``, one per sampled token."""
    logprobs = choice.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    return [entry for entry in _list(content) if isinstance(entry, Mapping)]


def _list(value: Any) -> list[Any]:
    """Returns the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []
