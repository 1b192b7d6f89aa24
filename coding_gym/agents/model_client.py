"""Requests to chat models: OpenAI-compatible servers, and other providers through LiteLLM."""

import asyncio
import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlsplit

from coding_gym.action import Completion
from coding_gym.agents.live_episode import ModelError
from coding_gym.errors import InvalidArgumentError, MissingDependencyError
from coding_gym.trajectory import ModelCall

_TOKEN_FLAGS = {"return_token_ids": True, "logprobs": True}  # vLLM's names, read by SGLang too
_REFUSALS = (400, 401, 402, 403, 404, 405, 413, 422)  # the same request would fail again
_TOO_LONG = ("context length", "context_length", "context window", "maximum context", "too long")
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
        message: The message as it was received, without fields that are empty.
    """

    action: str
    call: ModelCall
    prompt_ids: tuple[int, ...] = ()
    message: Mapping[str, Any] = field(default_factory=dict)


class ModelClient(Protocol):
    """Sends requests, with retries."""

    async def complete(self, request: Mapping[str, Any]) -> Reply:
        """Returns the reply to a request in the form of OpenAI's chat completions.

        Raises:
            PromptTooLongError: The prompt is longer than the model's context.
            ModelError: There is no reply, after all retries.
        """
        ...

    async def close(self) -> None:
        """Closes connections; idempotent."""
        ...


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
        capture: Whether token ids and log-probabilities are asked for: ``"always"``, ``"never"``,
            or ``"auto"``, which asks until the server refuses the fields.

    Raises:
        InvalidArgumentError: There is no key, and the server is not on this machine.
        MissingDependencyError: The ``openai`` package is not installed.
    """

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 600.0
    max_retries: int = 8
    prices: Prices | None = None
    capture: str = "auto"

    def __post_init__(self) -> None:
        """Makes the connection pool; nothing is sent yet."""
        openai = package("openai")
        host = urlsplit(self.base_url).hostname or ""
        key = self.api_key or os.environ.get("OPENAI_API_KEY")
        if not key and host not in _LOOPBACK:
            raise InvalidArgumentError(
                f"{self.base_url} needs an API key; set the environment variable OPENAI_API_KEY "
                "(any text where the server checks none)"
            )
        self._asks_ids = self.capture != "never"
        self._errors = openai
        self._client = openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=key or "none",
            timeout=self.timeout_s,
            max_retries=self.max_retries,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments: connections stay in their process, and so does an unnamed key."""
        return OpenAIClient, tuple(getattr(self, each.name) for each in fields(self))

    async def complete(self, request: Mapping[str, Any]) -> Reply:
        """Sends a request; see `ModelClient.complete`."""
        began = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout_s):
                response = await self._send(request)
        except TimeoutError:
            raise ModelError(
                f"{self.base_url} did not reply within {self.timeout_s:g} s", "timeout"
            ) from None
        except self._errors.APITimeoutError as problem:
            raise ModelError(f"{self.base_url}: {problem}", "timeout") from None
        except self._errors.APIStatusError as problem:
            said = f"{problem.status_code} {problem.response.text:.1000}"
            raise status_error(problem.status_code, f"{self.base_url}: {said}") from None
        except self._errors.APIError as problem:
            raise ModelError(f"{self.base_url}: {problem}") from None
        try:
            data = json.loads(response.content)
        except ValueError:
            raise ModelError(
                f"{self.base_url} replied what is not JSON: {response.content!r:.200}"
            ) from None
        duration_s = time.perf_counter() - began
        return read_reply(data, self.prices, duration_s, response.retries_taken)

    async def _send(self, request: Mapping[str, Any]) -> Any:
        """Returns the response; asks without token ids once the server has refused them."""
        if self._asks_ids:
            try:
                return await self._post({**request, **_TOKEN_FLAGS})
            except self._errors.APIStatusError as problem:
                said = problem.response.text
                named = any(name in said for name in (*_TOKEN_FLAGS, "extra"))
                if self.capture == "always" or problem.status_code not in (400, 422) or not named:
                    raise
                self._asks_ids = False
        return await self._post(request)

    async def _post(self, body: Mapping[str, Any]) -> Any:
        # As extra fields: the client would walk through all messages of every request.
        create = self._client.chat.completions.with_raw_response.create
        return await create(model=body["model"], messages=[], extra_body=dict(body))

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()


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
        """Sends a request; see `ModelClient.complete`."""
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
            raise status_error(code, str(problem)) from None
        reply = read_reply(response.model_dump(), self.prices, time.perf_counter() - began)
        cost = getattr(response, "_hidden_params", {}).get("response_cost")
        if reply.call.cost is None and cost is not None:
            reply = replace(reply, call=replace(reply.call, cost=cost))
        return reply

    async def close(self) -> None:
        """Does nothing: LiteLLM keeps its own connections."""


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


def status_error(status: int, problem: str) -> ModelError:
    """Returns the error for a server's refusal."""
    if status in (400, 413, 422) and any(words in problem.lower() for words in _TOO_LONG):
        return PromptTooLongError(problem, "refused")
    if status == 408:
        return ModelError(problem, "timeout")
    return ModelError(problem, "refused" if status in _REFUSALS else "model")


def read_reply(
    data: Any, prices: Prices | None = None, duration_s: float = 0.0, num_retries: int = 0
) -> Reply:
    """Returns the reply that a response's JSON holds.

    Token ids are read where vLLM and SGLang put them; a reply whose ids are not known is plain
    text, and no ids are invented for it.

    Raises:
        ModelError: The response has no reply, or the server's content policy withheld it.
    """
    try:
        choice = data["choices"][0]
        message = {k: choice["message"][k] for k in _MESSAGE_KEYS if choice["message"].get(k)}
        reason = str(choice.get("finish_reason") or "")
        usage = data.get("usage") or {}
    except (TypeError, KeyError, IndexError, AttributeError):
        raise ModelError(f"the server replied what has no message: {data!r:.200}") from None
    if reason == "content_filter":
        raise ModelError("the server's content policy withheld the reply", "refused")
    text = message.get("content") or ""
    if not isinstance(text, str):  # a list of parts
        text = "".join(part.get("text") or "" for part in text if isinstance(part, dict))
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
    return Reply(action, call, tuple(prompt_ids), message)


def _logprobs(choice: Mapping[str, Any], num_ids: int) -> list[float] | None:
    """Returns one log-probability per sampled id, or None where they are not all there."""
    content = (choice.get("logprobs") or {}).get("content") or ()
    values = [entry["logprob"] for entry in content]
    return values if len(values) == num_ids else None


def quiet_litellm() -> Any:
    """Returns LiteLLM, which downloads a table of prices and prints its failures otherwise."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = package("litellm")
    litellm.suppress_debug_info = True
    return litellm


def package(name: str) -> Any:
    """Returns a package of the extra ``llm``, imported."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingDependencyError(
            f"{name} is not installed; run: pip install 'coding-gym[llm]'"
        ) from None
