"""Requests to chat models: OpenAI-compatible servers, and other providers through LiteLLM."""

import asyncio
import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import urlsplit

from coding_gym.action import Completion
from coding_gym.agents.live_episode import ModelError
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_optional
from coding_gym.trajectory import ModelCall

_LLM_EXTRA = "'coding-gym[llm]'"
_TOKEN_FLAGS = {"return_token_ids": True, "logprobs": True}  # vLLM's names, read by SGLang too
_REFUSALS = (400, 401, 402, 403, 404, 405, 413, 422)  # the same request would fail again
_TOO_LONG = ("context length", "context_length", "context window", "maximum context", "too long")
_NO_KEY = "none"
_REQUESTS_PER_POOL = 16  # a pool walks through all its connections for each request
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MESSAGE_KEYS = ("content", "reasoning_content", "reasoning", "tool_calls")


class PromptTooLongError(ModelError):
    """The prompt has more tokens than the model takes; the episode ends here, and is graded."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply.

    Attributes:
        action: What `Episode.step` takes: the text, or the whole message as JSON where it has tool
            calls or reasoning; a `Completion` where the server gives the ids that it sampled.
        call: The request's figures.
        prompt_ids: The ids of the prompt; none where the server does not give them.
        text: What the message says, without its reasoning and calls.
        response: The whole response as it was received.
    """

    action: str
    call: ModelCall
    prompt_ids: tuple[int, ...]
    text: str
    response: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of a million tokens each, in one currency.

    Attributes:
        input: Tokens of prompts.
        output: Tokens of replies, reasoning included.
        cached_input: Tokens of prompts that the server had in its cache; None: as other input.
    """

    input: float
    output: float
    cached_input: float | None = None

    def cost(self, prompt: int, completion: int, cached: int) -> float:
        """Returns the cost of a request."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = prompt - cached
        return (fresh * self.input + cached * cached_price + completion * self.output) / 1e6


@dataclass
class OpenAIClient:
    """Any server that speaks OpenAI's chat completions: vLLM, SGLang, llama.cpp, and others.

    Attributes:
        base_url: Address of the API, such as ``"http://localhost:8000/v1"``.
        api_key: Key; by default that of the environment variable ``OPENAI_API_KEY``. Servers on
            this machine need none.
        timeout_s: Seconds that a reply may take, retries included.
        max_retries: How often a request is sent again after a failed connection, 408, 409, 429 or
            5xx, with exponential back-off or as the server's ``Retry-After`` says.
        prices: For the cost of requests; a cost that the server reports takes precedence.

    Raises:
        InvalidArgumentError: There is no key, and the server is not on this machine; or the address
            holds a secret.
        MissingDependencyError: The ``openai`` package is not installed.
    """

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 600.0
    max_retries: int = 8
    prices: Prices | None = None

    def __post_init__(self) -> None:
        """Makes the connection pool; nothing is sent yet."""
        self._openai = import_optional("openai", _LLM_EXTRA)
        address = urlsplit(self.base_url)
        host = address.hostname or ""
        if address.username or address.query:
            raise InvalidArgumentError(
                "base_url is written to records, so it may hold no user, password or query; set "
                "the environment variable OPENAI_API_KEY"
            )
        key = self.api_key or os.environ.get("OPENAI_API_KEY")
        if not key and host not in _LOOPBACK:
            raise InvalidArgumentError(
                f"{self.base_url} needs an API key; set the environment variable OPENAI_API_KEY "
                "(any text where the server checks none)"
            )
        self._asks_ids = True  # until the server refuses the fields
        self._key = key or _NO_KEY
        self._pools = [self._new_pool()]
        self._num_waiting = [0]  # requests of each pool

    def _new_pool(self) -> Any:
        return self._openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=self._key,
            timeout=None,  # all tries together have one
            max_retries=self.max_retries,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments: connections stay in their process, and so does an unnamed key."""
        return OpenAIClient, tuple(getattr(self, each.name) for each in fields(self))

    async def complete(self, request: Mapping[str, Any]) -> Reply:
        """Returns the reply to a request in the form of OpenAI's chat completions.

        Raises:
            PromptTooLongError: The prompt is longer than the model's context.
            ModelError: There is no reply, after all retries.
        """
        began = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout_s):
                response = await self._send(request)
        except TimeoutError:
            raise ModelError(
                f"{self.base_url} did not reply within {self.timeout_s:g} s", "timeout"
            ) from None
        except self._openai.APIStatusError as problem:
            text = problem.response.text
            if self._key != _NO_KEY:
                text = text.replace(self._key, "[key]")
            said = f"{problem.status_code} {text:.1000}"
            raise _status_error(problem.status_code, f"{self.base_url}: {said}") from None
        except self._openai.APIError as problem:
            raise ModelError(f"{self.base_url}: {problem}") from None
        data: Any = response.content
        with suppress(ValueError):
            data = json.loads(data)
        duration_s = time.perf_counter() - began
        return _read_reply(data, self.prices, duration_s, response.retries_taken)

    async def _send(self, request: Mapping[str, Any]) -> Any:
        """Returns the response; asks without token ids once the server has refused them."""
        if self._asks_ids:
            try:
                return await self._post({**request, **_TOKEN_FLAGS})
            except self._openai.APIStatusError as problem:
                said = problem.response.text
                named = any(name in said for name in (*_TOKEN_FLAGS, "extra"))
                if problem.status_code not in (400, 422) or not named:
                    raise
            response = await self._post(request)
            self._asks_ids = False  # they were what it refused
            return response
        return await self._post(request)

    async def _post(self, body: Mapping[str, Any]) -> Any:
        waiting = self._num_waiting
        number = next((i for i, n in enumerate(waiting) if n < _REQUESTS_PER_POOL), len(waiting))
        if number == len(waiting):
            self._pools.append(self._new_pool())
            waiting.append(0)
        waiting[number] += 1
        try:
            # As extra fields: the client would walk through all messages of every request.
            create = self._pools[number].chat.completions.with_raw_response.create
            return await create(model=body["model"], messages=[], extra_body=dict(body))
        finally:
            waiting[number] -= 1

    async def close(self) -> None:
        """Closes the connections."""
        for pool in self._pools:
            await pool.close()


@dataclass
class LiteLLMClient:
    """Other providers, named by the model's prefix as in ``"anthropic/…"``, through LiteLLM.

    Keys are read by LiteLLM from each provider's own environment variables.

    Attributes:
        timeout_s, max_retries, prices: As for `OpenAIClient`; without prices those of LiteLLM's
            own table count.

    Raises:
        MissingDependencyError: The ``litellm`` package is not installed.
    """

    timeout_s: float = 600.0
    max_retries: int = 8
    prices: Prices | None = None

    def __post_init__(self) -> None:
        """Imports LiteLLM."""
        self._litellm = quiet_litellm()

    async def complete(self, request: Mapping[str, Any]) -> Reply:
        """Sends a request; see `OpenAIClient.complete`."""
        began = time.perf_counter()
        errors = self._litellm.exceptions
        try:
            async with asyncio.timeout(self.timeout_s):
                response = await self._litellm.acompletion(
                    **request,
                    timeout=self.timeout_s,
                    num_retries=self.max_retries,
                    drop_params=True,  # such as a seed, where a provider takes none
                )
        except (TimeoutError, errors.Timeout):
            model = request["model"]
            raise ModelError(f"{model} did not reply in {self.timeout_s:g} s", "timeout") from None
        except Exception as problem:  # noqa: BLE001 - each provider has its own kinds
            code = getattr(problem, "status_code", 500)
            raise _status_error(code, str(problem)) from None
        reply = _read_reply(response.model_dump(), self.prices, time.perf_counter() - began)
        cost = getattr(response, "_hidden_params", {}).get("response_cost")
        if reply.call.cost is None and cost is not None:
            reply = replace(reply, call=replace(reply.call, cost=cost))
        return reply

    async def close(self) -> None:
        """Does nothing: LiteLLM keeps its own connections."""


ModelClient = OpenAIClient | LiteLLMClient


def check_local_server(base_url: str) -> None:
    """Checks that a server on this machine is there, before a run retries every request.

    Raises:
        InvalidArgumentError: Nothing listens at the address, or it is no address.
    """
    try:
        address = urlsplit(base_url)
        host, port = address.hostname or "", address.port or 80
        if not address.scheme.startswith("http") or not host:
            raise ValueError("it must begin with http:// or https://")
        if host in _LOOPBACK:
            socket.create_connection((host, port), timeout=10).close()
    except (OSError, ValueError) as problem:
        raise InvalidArgumentError(
            f"no server answers at {base_url}: {problem}; start it, or correct the address"
        ) from None


def _status_error(status: int, problem: str) -> ModelError:
    """Returns the error for a server's refusal."""
    if status in (400, 413, 422) and any(words in problem.lower() for words in _TOO_LONG):
        return PromptTooLongError(problem, "refused")
    return ModelError(problem, "refused" if status in _REFUSALS else "model")


def _read_reply(data: Any, prices: Prices | None, duration_s: float, num_retries: int = 0) -> Reply:
    """Returns the reply that a response holds.

    Token ids are read where vLLM and SGLang put them; a reply whose ids are not known is plain
    text, and no ids are invented for it.

    Raises:
        ModelError: The response has no reply, or the server's content policy withheld it.
    """
    try:
        choice = data["choices"][0]
        message = {k: choice["message"][k] for k in _MESSAGE_KEYS if choice["message"].get(k)}
    except (TypeError, KeyError, IndexError, AttributeError):
        raise ModelError(f"the server replied what has no message: {data!r:.200}") from None
    reason, usage = str(choice.get("finish_reason") or ""), data.get("usage") or {}
    if reason == "content_filter":
        raise ModelError("the server's content policy withheld the reply", "refused")
    text = message.get("content") or ""
    if not isinstance(text, str):  # a list of parts
        text = "".join(part.get("text") or "" for part in text)
    is_plain = not message.keys() - {"content"}
    action = text if is_plain else json.dumps({"role": "assistant", **message, "content": text})
    prompt_ids = data.get("prompt_token_ids") or choice.get("prompt_token_ids") or ()
    ids = choice.get("token_ids") or choice.get("response_token_ids") or ()
    if ids:
        action = Completion(action, ids, _logprobs(choice, len(ids)))
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    cost = usage.get("cost")
    if cost is None and prices is not None:
        cost = prices.cost(prompt or len(prompt_ids), completion or len(ids), cached or 0)
    call = ModelCall(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        cost=cost,
        finish_reason=reason,
        duration_s=duration_s,
        num_retries=num_retries,
    )
    return Reply(action, call, tuple(prompt_ids), text, data)


def _logprobs(choice: Mapping[str, Any], num_ids: int) -> list[float] | None:
    """Returns one log-probability per sampled id, or None where they are not all there."""
    content = (choice.get("logprobs") or {}).get("content") or ()
    values = [entry["logprob"] for entry in content]
    return values if len(values) == num_ids else None


def quiet_litellm() -> Any:
    """Returns LiteLLM, which downloads a table of prices and prints its failures otherwise."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = import_optional("litellm", _LLM_EXTRA)
    litellm.suppress_debug_info = True
    return litellm
