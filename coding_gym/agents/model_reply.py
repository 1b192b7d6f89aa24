"""A chat model's reply, read from a server's JSON, and its cost."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coding_gym.action import Completion
from coding_gym.agents.model_errors import INVALID, ModelError, model_error
from coding_gym.arguments import is_number
from coding_gym.calls import TOKEN_COUNTS, ModelCall
from coding_gym.episode.limits import Amount
from coding_gym.json_record import JsonRecord
from coding_gym.tools.formats import content_text, message_calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices(JsonRecord):
    """Prices per million tokens, in one currency, finite and 0 or more.

    `from_json` checks each field.

    Attributes:
        input: Tokens of prompts.
        output: Tokens of replies, reasoning included.
        cached_input: Tokens of prompts that the server read from its cache; by default the price of
            ``input``.
    """

    input: Amount
    output: Amount
    cached_input: Amount | None = None

    def cost(self, prompt: int, completion: int, cached: int) -> float:
        """Returns the cost of a request; the ``cached`` tokens are part of ``prompt``."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        uncached = prompt - cached
        return (uncached * self.input + cached * cached_price + completion * self.output) / 1e6


def read_reply(
    data: Any, prices: Prices | None = None, duration_s: float = 0.0, num_retries: int = 0
) -> Completion:
    """Returns the reply in a response.

    Token ids are read from the fields of vLLM, SGLang and llama.cpp; llama.cpp returns no ids of
    prompts.

    Args:
        data: The JSON of a chat completion.
        prices: Prices for the cost, if the response has no cost.
        duration_s: Wall time of the request in seconds, retries included.
        num_retries: Number of retries of the request.

    Raises:
        ModelError: The response has no message, or a content policy withheld the reply.
    """
    choice = _at(data, "choices", 0)
    message = _at(choice, "message")
    if not isinstance(message, Mapping):
        if error := _at(data, "error"):  # some proxies report errors with status 200
            code = _at(error, "code")
            status = code if isinstance(code, int) else INVALID[0]
            raise model_error(status, json.dumps(error, default=str))
        raise ModelError(f"the response must have a message, got {data!r}")
    reason = str(choice.get("finish_reason") or "")
    if reason == "content_filter":
        raise ModelError("the server's content policy withheld the reply", "refused")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    calls = message_calls({**message, "tool_calls": _list(message.get("tool_calls"))})
    prompt_ids = _ids(data.get("prompt_token_ids")) or _ids(choice.get("prompt_token_ids"))
    ids, logprobs = _sampled(choice)
    model_call = ModelCall(
        **_usage(data, prices, len(prompt_ids), len(ids)),
        finish_reason=reason,
        duration_s=duration_s,
        num_retries=num_retries,
        prompt_ids=prompt_ids,
    )
    return Completion(
        content_text(message.get("content")),
        ids,
        logprobs,
        calls or None,
        reasoning=reasoning if isinstance(reasoning, str) else "",
        is_cut=reason == "length",
        model_call=model_call,
    )


def _sampled(choice: Mapping[str, Any]) -> tuple[tuple[int, ...], list[float] | None]:
    """Returns the sampled ids, and their log-probabilities if all of them are finite."""
    tokens = _list(_at(choice, "logprobs", "content"))
    meta_tokens = _list(_at(choice, "meta_info", "output_token_logprobs"))  # SGLang's
    ids = (
        _ids(choice.get("token_ids"))
        or _ids(choice.get("response_token_ids"))
        or _ids([_at(token, 1) for token in meta_tokens])
        or _ids([_at(token, "id") for token in tokens])
    )
    logprobs = [_at(token, "logprob") for token in tokens]
    is_complete = len(logprobs) == len(ids) and all(map(_is_finite, logprobs))
    return ids, logprobs if ids and is_complete else None


def _usage(data: Any, prices: Prices | None, num_prompt_ids: int, num_ids: int) -> dict[str, Any]:
    """Returns the token counts and the cost of a request; each unknown value is None."""
    prompt = _count(_at(data, "usage", "prompt_tokens")) or num_prompt_ids or None
    completion = _count(_at(data, "usage", "completion_tokens"))
    completion = completion or num_ids or completion  # an empty reply can have 0 tokens
    cached = _count(_at(data, "usage", "prompt_tokens_details", "cached_tokens"))
    cost = _number(_at(data, "usage", "cost"))
    if cost is None and not (prices is None or prompt is None or completion is None):
        cost = prices.cost(prompt, completion, cached or 0)
    return dict(zip((*TOKEN_COUNTS, "cost"), (prompt, completion, cached, cost), strict=True))


def _at(value: Any, *path: str | int) -> Any:
    """Returns the value at a path of keys and indices; None if a part of the path is missing."""
    for step in path:
        try:
            value = value[step]
        except (TypeError, LookupError):
            return None
    return value


def _number(value: Any) -> Any:
    """Returns the value if it is a finite number of at least 0, else None."""
    return value if _is_finite(value) and value >= 0 else None


def _count(value: Any) -> int | None:
    """Returns the value as an integer if it is a finite number of at least 0, else None."""
    number = _number(value)
    return None if number is None else int(number)


def _ids(value: Any) -> tuple[int, ...]:
    """Returns the value as token ids if it is a list of integers, else ()."""
    is_list = isinstance(value, Sequence) and all(type(token) is int for token in value)
    return tuple(value) if is_list else ()


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def _list(value: Any) -> list[Any]:
    """Returns the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []
