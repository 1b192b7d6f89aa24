"""Requests to chat models: OpenAI-compatible servers, and other providers through LiteLLM."""

import asyncio
import json
import logging
import os
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from coding_gym.action import Completion
from coding_gym.agents.live_episode import ModelError, PromptTooLongError, public_text
from coding_gym.errors import InvalidArgumentError
from coding_gym.json_record import JsonRecord
from coding_gym.optional import import_extra, import_optional, requirement
from coding_gym.tools.formats import message_calls
from coding_gym.trajectory import ModelCall

_log = logging.getLogger(__name__)

_TOKEN_FLAGS = {
    "logprobs": True,
    "return_token_ids": True,  # vLLM, SGLang
    "return_prompt_token_ids": True,  # SGLang
    "return_meta_info": True,  # SGLang before `return_token_ids`
}
_REFUSALS = (400, 401, 402, 403, 404, 405, 413, 422)  # the same request would fail again
_TOO_LONG = ("context length", "context_length", "context window", "contextwindow", "too long")
_LLAMA_CPP_TOO_LONG = "exceeds the available context size"  # with status 400 or 500
_REQUESTS_PER_POOL = 16  # a pool walks through all its connections for each request
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MESSAGE_KEYS = ("content", "reasoning_content", "reasoning", "tool_calls", "function_call")


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply.

    Attributes:
        action: What `Episode.step` takes: the text; a `Completion` where the server has separated
            tool calls or reasoning from it, or gives the ids that it sampled.
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
class Prices(JsonRecord):
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
class ModelClient(ABC):
    """Asks a model for replies, in the form of OpenAI's chat completions.

    API keys are read from environment variables only, so that no record can hold one.

    Attributes:
        base_url: Address of the API, such as ``"http://localhost:8000/v1"``; none for LiteLLM.
        timeout_s: Seconds that a reply may take, retries included.
        max_retries: How often a request is sent again after a failed connection, 408, 409, 429 or
            5xx, with exponential back-off or as the server's ``Retry-After`` says.
        prices: For the cost of requests; a cost that the server reports takes precedence.

    Raises:
        MissingDependencyError: The extra ``llm`` is not installed.
    """

    base_url: str = ""
    timeout_s: float = 600.0
    max_retries: int = 8
    prices: Prices | None = None
    _key = ""

    def __post_init__(self) -> None:
        """Imports the client; nothing is sent yet."""
        self._openai = import_extra("openai", "llm")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments: keys and connections stay in their process."""
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    async def complete(self, request: Mapping[str, Any]) -> Reply:
        """Returns the reply to a request.

        Raises:
            PromptTooLongError: The prompt is longer than the model's context.
            ModelError: There is no reply, after all retries.
        """
        openai, server = self._openai, self.base_url or "LiteLLM"
        began = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout_s):
                data, num_retries = await self._send(request)
            return read_reply(data, self.prices, time.perf_counter() - began, num_retries)
        except (TimeoutError, openai.APITimeoutError):
            raise ModelError(
                f"{server} did not reply within {self.timeout_s:g} s", "timeout"
            ) from None
        except openai.APIError as problem:  # LiteLLM's errors are of these classes too
            status = getattr(problem, "status_code", 500)
            has_body = self.base_url and isinstance(problem, openai.APIStatusError)
            text = f"{status} {problem.response.text}" if has_body else str(problem)
            failure = model_error(status, text)
        except ModelError as problem:
            failure = problem
        text = str(failure)
        if self._key:  # `public_text` leaves out short ones
            text = text.replace(self._key, "[key]")
        raise type(failure)(f"{server}: {public_text(text):.1000}", failure.error_class)

    @abstractmethod
    async def _send(self, request: Mapping[str, Any]) -> tuple[Any, int]:
        """Returns the JSON of the response, and the number of retries."""

    async def close(self) -> None:
        """Closes the connections; idempotent."""
        return


@dataclass
class OpenAIClient(ModelClient):
    """Any server that speaks OpenAI's chat completions: vLLM, SGLang, llama.cpp, and others.

    The key is the environment variable ``OPENAI_API_KEY``; servers on this machine need none.

    Raises:
        InvalidArgumentError: There is no key, and the server is not on this machine; or the address
            holds a secret.
    """

    def __post_init__(self) -> None:
        """Checks the address and the key; nothing is sent yet."""
        super().__post_init__()
        address = urlsplit(self.base_url)
        if address.username or address.query:
            raise InvalidArgumentError(
                "base_url is written to records, so it may hold no user, password or query; set "
                "the environment variable OPENAI_API_KEY"
            )
        self._key = os.environ.get("OPENAI_API_KEY", "")
        if not self._key and address.hostname not in _LOOPBACK:
            raise InvalidArgumentError(
                f"{self.base_url} needs an API key; set the environment variable OPENAI_API_KEY "
                "(any text where the server checks none)"
            )
        self._asks_ids = True  # until the server refuses the fields
        self._pools: list[Any] = []
        self._free: list[Any] = []  # a pool for each request that may be sent now

    async def _send(self, request: Mapping[str, Any]) -> tuple[Any, int]:
        """Sends a request; without asking for token ids once the server has refused that."""
        if self._asks_ids:
            try:
                return await self._post({**request, **_TOKEN_FLAGS})
            except self._openai.APIStatusError as problem:
                named = any(name in problem.response.text for name in (*_TOKEN_FLAGS, "extra"))
                if problem.status_code not in (400, 422) or not named:
                    raise
        reply = await self._post(request)
        self._asks_ids = False  # they were what it refused
        return reply

    async def _post(self, body: Mapping[str, Any]) -> tuple[Any, int]:
        if not self._free:
            pool = self._openai.AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._key or "none",
                timeout=None,  # all tries together have one
                max_retries=self.max_retries,
            )
            self._pools.append(pool)
            self._free += [pool] * _REQUESTS_PER_POOL
        pool = self._free.pop()
        try:
            # As extra fields: the client would walk through all messages of every request.
            response = await pool.chat.completions.with_raw_response.create(
                model=body["model"], messages=[], extra_body=dict(body)
            )
        finally:
            self._free.append(pool)
        try:
            return json.loads(response.content), response.retries_taken
        except ValueError:
            return response.content, response.retries_taken

    async def close(self) -> None:
        """Closes the connections."""
        for pool in self._pools:
            await pool.close()


@dataclass
class LiteLLMClient(ModelClient):
    """Other providers, named by the model's prefix as in ``"anthropic/…"``, through LiteLLM.

    LiteLLM reads keys from each provider's own environment variables. Without ``prices`` the cost
    is that of LiteLLM's own table. The first failure is logged as a warning, before all retries.
    """

    def __post_init__(self) -> None:
        """Imports LiteLLM."""
        hint = "; or give base_url (--base-url), the address of the model's server"
        self._litellm = quiet_litellm(hint)
        super().__post_init__()
        self._has_warned = False

    async def _send(self, request: Mapping[str, Any]) -> tuple[Any, int]:
        """Sends a request, again after failures: LiteLLM's own retries are silent."""
        num_retries = 0
        while True:
            try:
                response = await self._litellm.acompletion(
                    **request,
                    timeout=self.timeout_s,
                    num_retries=0,
                    drop_params=True,  # such as a seed, where a provider takes none
                )
                break
            except self._openai.APIError as problem:
                await self._back_off(problem, self.max_retries - num_retries)
            num_retries += 1
        data = response.model_dump()
        if self.prices is None:
            cost = getattr(response, "_hidden_params", {}).get("response_cost")
            data["usage"] = {"cost": cost, **(data.get("usage") or {})}
        return data, num_retries

    async def _back_off(self, problem: Exception, retries_left: int) -> None:
        """Waits before a request is sent again; raises the problem where it would be in vain."""
        if retries_left <= 0 or getattr(problem, "status_code", 500) in _REFUSALS:
            raise problem
        if not self._has_warned:
            self._has_warned = True
            text = "".join(c if c.isprintable() else " " for c in public_text(str(problem)))
            _log.warning("%.300s; the request is sent again %d times", text, retries_left)
        headers = getattr(problem, "litellm_response_headers", None)
        wait = self._litellm.utils.calculate_retry_after
        await asyncio.sleep(wait(retries_left, self.max_retries, headers))


def check_local_server(base_url: str) -> None:
    """Checks that a server on this machine is there, before a run retries every request.

    Raises:
        InvalidArgumentError: Nothing listens at the address, or it is no address.
    """
    try:
        address = urlsplit(base_url)
        if not (address.scheme.startswith("http") and address.hostname):
            raise ValueError("it must begin with http:// or https://")
        if address.hostname in _LOOPBACK:
            socket.create_connection((address.hostname, address.port or 80), timeout=10).close()
    except (OSError, ValueError) as problem:
        raise InvalidArgumentError(
            f"no server answers at {base_url}: {problem}; start it, or correct the address"
        ) from None


def model_error(status: int, problem: str) -> ModelError:
    """Returns the error for a server's refusal: `PromptTooLongError` for a full context.

    Args:
        status: The HTTP status.
        problem: The text of the response.
    """
    is_too_long = any(words in problem.lower() for words in _TOO_LONG)
    if _LLAMA_CPP_TOO_LONG in problem or (is_too_long and status in (400, 413, 422)):
        return PromptTooLongError(problem)
    return ModelError(problem, "refused" if status in _REFUSALS else "model")


def read_reply(
    data: Any, prices: Prices | None = None, duration_s: float = 0.0, num_retries: int = 0
) -> Reply:
    """Returns the reply that a response holds.

    Token ids are read where vLLM and SGLang put them; a reply without ids is plain text.

    Args:
        data: The JSON of a chat completion.
        prices: For the cost, where the response has none.
        duration_s: Wall time of the request in seconds, retries included.
        num_retries: How many times the request was sent again.

    Raises:
        ModelError: There is no message, or a content policy withheld it.
    """
    try:
        choice = data["choices"][0]
        message = {k: choice["message"][k] for k in _MESSAGE_KEYS if choice["message"].get(k)}
    except (TypeError, KeyError, IndexError, AttributeError):
        raise ModelError(f"the reply has no message: {data!r}") from None
    reason, usage = str(choice.get("finish_reason") or ""), data.get("usage") or {}
    if reason == "content_filter":
        raise ModelError("the server's content policy withheld the reply", "refused")
    text = content_text(message.get("content"))
    thought = message.get("reasoning_content") or message.get("reasoning")
    calls = message_calls(message) or None
    prompt_ids = data.get("prompt_token_ids") or choice.get("prompt_token_ids") or ()
    ids = choice.get("token_ids") or choice.get("response_token_ids") or _meta_ids(choice)
    action = text
    if ids or calls or thought:
        action = Completion(
            text,
            ids,
            _logprobs(choice, len(ids)) if ids else None,
            calls,
            reasoning=thought if isinstance(thought, str) else "",
        )
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


def content_text(content: Any) -> str:
    """Returns the text of a message's content, which may be a list of parts or None."""
    if isinstance(content, str | None):
        return content or ""
    return "".join(part.get("text") or "" for part in content)


def _meta_ids(choice: Mapping[str, Any]) -> list[int]:
    """Returns the ids that SGLang gives as ``[logprob, id, text]`` where it has no other field."""
    entries = (choice.get("meta_info") or {}).get("output_token_logprobs") or ()
    return [entry[1] for entry in entries]


def _logprobs(choice: Mapping[str, Any], num_ids: int) -> list[float] | None:
    """Returns one log-probability per sampled id, or None where they are not all there."""
    content = (choice.get("logprobs") or {}).get("content") or ()
    values = [entry["logprob"] for entry in content]
    return values if len(values) == num_ids else None


def quiet_litellm(hint: str = "") -> Any:
    """Returns LiteLLM, which downloads a table of prices and prints its failures otherwise."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = import_optional("litellm", requirement("llm") + hint)
    litellm.suppress_debug_info = True
    return litellm
