"""Requests to chat models: OpenAI-compatible servers, and other providers through LiteLLM."""

import asyncio
import json
import logging
import os
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass, fields
from itertools import count
from typing import Any, ClassVar
from urllib.parse import urlsplit

from coding_gym.agents.live_episode import ModelError, public_text
from coding_gym.agents.model_reply import Prices, Reply, read_reply
from coding_gym.agents.refusals import INVALID, REFUSALS, TOKEN_FLAGS, accepted_request, model_error
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_extra, import_optional, requirement

_log = logging.getLogger(__name__)

_MAX_WAIT_S = 60.0  # before a request is sent again
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass
class ModelClient(ABC):
    """Sends requests to a model, in the form of OpenAI's chat completions.

    API keys are read from environment variables only, so that no record can contain one.

    Attributes:
        base_url: Address of the API, such as ``"http://localhost:8000/v1"``; "" for LiteLLM.
        timeout_s: Time limit of a reply in seconds, retries included.
        max_retries: How many times a request is sent again after a failed connection or the status
            408, 409, 429 or 5xx, with exponential back-off.
        prices: Prices for the cost of requests; a cost that the server reports takes precedence.

    Raises:
        MissingDependencyError: The extra ``llm`` is not installed.
    """

    base_url: str = ""
    timeout_s: float = 600.0
    max_retries: int = 8
    prices: Prices | None = None
    _key = ""
    _flags: ClassVar[Mapping[str, int]] = {}  # fields that ask the server for token ids

    def __post_init__(self) -> None:
        """Imports the client; nothing is sent yet."""
        self._openai = import_extra("openai", "llm")
        self._refused: frozenset[str] = frozenset()  # fields that the server does not take
        self._limit_name = "max_tokens"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments: keys and connections stay in their process."""
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    async def complete(self, request: Mapping[str, Any]) -> Reply:
        """Returns the reply to a request.

        Raises:
            PromptTooLongError: The prompt is longer than the model's context.
            ModelError: All retries failed, or the server refuses the request.
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
        if self._key:  # `public_text` masks no short keys
            text = text.replace(self._key, "[key]")
        raise type(failure)(f"{server}: {public_text(text):.1000}", failure.error_class)

    async def _send(self, request: Mapping[str, Any]) -> tuple[Any, int]:
        """Returns the JSON of the response, and the number of retries.

        A request that the server refuses is sent again as `accepted_request` changes it. Later
        requests omit the fields that the server refused.
        """
        full = {**request, **self._flags}
        if request.get("logprobs") and "top_logprobs" in request:  # a harness reads these
            full["top_logprobs"] = request["top_logprobs"]
        full = {name: value for name, value in full.items() if name not in self._refused}
        if "max_tokens" in full:
            full[self._limit_name] = full.pop("max_tokens")
        body = full
        while True:
            try:
                reply = await self._post(body)
            except self._openai.APIStatusError as problem:
                text = problem.response.text or str(problem)
                changed = accepted_request(body, text) if problem.status_code in INVALID else None
                if changed is None:
                    raise
                body = changed
            else:
                self._remember(full.keys() - body.keys())
                return reply

    def _remember(self, refused: Set[str]) -> None:
        """Stores the fields that a request lacked when the server accepted it."""
        if "max_tokens" in refused:
            self._limit_name = "max_completion_tokens"
        if dropped := refused - {"max_tokens"}:
            self._refused |= dropped
            names = ", ".join(sorted(dropped))
            server = self.base_url or "LiteLLM"
            _log.warning("%s refuses the fields %s; later requests omit them", server, names)

    @abstractmethod
    async def _post(self, body: Mapping[str, Any]) -> tuple[Any, int]:
        """Sends a request as it is; returns the JSON of the response and the number of retries."""

    async def context(self, model: str) -> int | None:  # noqa: ARG002 - only servers list models
        """Returns the context length in tokens if the server reports it, else None."""
        return None

    async def close(self) -> None:
        """Closes the connections; idempotent."""
        return


@dataclass
class OpenAIClient(ModelClient):
    """Any server with OpenAI's chat completions: vLLM, SGLang, llama.cpp, and others.

    The key is the environment variable ``OPENAI_API_KEY``; servers on this machine need no key.

    Raises:
        InvalidArgumentError: A server on another machine has no key, or the address contains a
            user, a password or a query.
    """

    _flags = TOKEN_FLAGS

    def __post_init__(self) -> None:
        """Checks the address and the key; nothing is sent yet."""
        super().__post_init__()
        address = urlsplit(self.base_url)
        if address.username or address.query:
            raise InvalidArgumentError(
                "base_url is written to records, so it must not contain a user, a password or a "
                "query; set the environment variable OPENAI_API_KEY"
            )
        self._key = os.environ.get("OPENAI_API_KEY", "")
        if not self._key and address.hostname not in _LOOPBACK:
            raise InvalidArgumentError(
                f"{self.base_url} needs an API key; set the environment variable OPENAI_API_KEY "
                "(to any text if the server checks no key)"
            )
        self._client = self._openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=self._key or "none",
            timeout=None,  # `complete` limits all tries together
            max_retries=self.max_retries,
        )

    async def _post(self, body: Mapping[str, Any]) -> tuple[Any, int]:
        # As extra fields: the client would convert all messages of every request.
        response = await self._client.chat.completions.with_raw_response.create(
            model=body["model"], messages=[], extra_body=dict(body)
        )
        try:
            return json.loads(response.content), response.retries_taken
        except ValueError:
            return response.content, response.retries_taken

    async def context(self, model: str) -> int | None:
        """Reads the server's list of models; see `ModelClient.context`."""
        try:
            models = await self._client.with_options(timeout=10, max_retries=0).models.list()
        except self._openai.OpenAIError:
            return None
        for entry in models.data or ():  # some servers reply to any path
            fields = entry.model_extra or {}
            meta = fields.get("meta") or {}  # of llama.cpp; vLLM and SGLang have max_model_len
            if entry.id == model or len(models.data) == 1:
                return fields.get("max_model_len") or meta.get("n_ctx") or meta.get("n_ctx_train")
        return None

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()


@dataclass
class LiteLLMClient(ModelClient):
    """Other providers through LiteLLM; the model's prefix names one, as in ``"anthropic/…"``.

    LiteLLM reads keys from the environment variables of each provider. Without ``prices`` the cost
    comes from LiteLLM's price table.
    """

    def __post_init__(self) -> None:
        """Imports LiteLLM, which by default downloads a table of prices and prints failures."""
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        hint = "; or give base_url (--base-url), the address of the model's server"
        self._litellm = import_optional("litellm", requirement("llm") + hint)
        self._litellm.suppress_debug_info = True
        super().__post_init__()

    async def _post(self, body: Mapping[str, Any]) -> tuple[Any, int]:
        """Sends a request with retries, since those of LiteLLM repeat refused requests too."""
        for num_retries in count():
            try:
                response = await self._litellm.acompletion(
                    **body,
                    timeout=self.timeout_s,
                    num_retries=0,
                    drop_params=True,  # omit fields that a provider does not support
                )
                break
            except self._openai.APIError as problem:
                status = getattr(problem, "status_code", 500)
                if num_retries == self.max_retries or status in REFUSALS:
                    raise
                await asyncio.sleep(min(2**num_retries, _MAX_WAIT_S))
        data = response.model_dump()
        if self.prices is None:
            cost = getattr(response, "_hidden_params", {}).get("response_cost")
            data["usage"] = {"cost": cost, **(data.get("usage") or {})}
        return data, num_retries


def get_client(
    base_url: str | None = None, timeout_s: float = 600.0, prices: Prices | None = None
) -> ModelClient:
    """Returns the client of a server; without an address, the client of LiteLLM.

    Raises:
        InvalidArgumentError: The address is malformed, or no server listens there on this machine:
            a run would retry every request.
        MissingDependencyError: The extra ``llm`` is not installed.
    """
    if not base_url:
        return LiteLLMClient("", timeout_s, prices=prices)
    _check_local_server(base_url)
    return OpenAIClient(base_url, timeout_s, prices=prices)


def _check_local_server(base_url: str) -> None:
    try:
        address = urlsplit(base_url)
        if not (address.scheme.startswith("http") and address.hostname):
            raise ValueError("it must begin with http:// or https://")
        if address.hostname in _LOOPBACK:
            socket.create_connection((address.hostname, address.port or 80), timeout=10).close()
    except (OSError, ValueError) as problem:
        raise InvalidArgumentError(
            f"no server listens at {base_url}: {problem}; start the server, or correct the address"
        ) from None
