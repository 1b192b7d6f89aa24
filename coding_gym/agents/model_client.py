"""A client for servers with OpenAI's chat completions."""

import asyncio
import json
import logging
import os
import socket
import time
from collections.abc import Mapping, Set
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from coding_gym.action import Completion
from coding_gym.agents.model_errors import (
    INVALID,
    TOKEN_FLAGS,
    ModelError,
    accepted_request,
    model_error,
    public_text,
)
from coding_gym.agents.model_reply import Prices, read_reply
from coding_gym.arguments import positive_seconds
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_extra

_log = logging.getLogger(__name__)

OPENAI_URL = "https://api.openai.com/v1"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass
class OpenAIClient:
    """Sends requests to any server with OpenAI's chat completions.

    The API key is read from the environment variable ``OPENAI_API_KEY`` and never recorded. Servers
    on this machine need no key.

    Attributes:
        base_url: Address of the API, such as ``"http://localhost:8000/v1"``.
        timeout_s: Time limit of a reply in seconds, retries included.
        max_retries: Maximum number of retries after a failed connection or the status 408, 409, 429
            or 5xx. The header ``Retry-After`` sets the delay; without it the delay grows
            exponentially.
        prices: Prices for the cost of requests; a cost that the server reports takes precedence.

    Raises:
        InvalidArgumentError: There is no key for a server on another machine; the address contains
            a user, a password or a query; or the time limit is out of range.
        MissingDependencyError: The extra ``llm`` is not installed.
    """

    base_url: str = OPENAI_URL
    timeout_s: float = 600.0
    max_retries: int = 8
    prices: Prices | None = None

    def __post_init__(self) -> None:
        """Checks the arguments and the key."""
        self._openai = import_extra("openai", "llm")
        self.timeout_s = positive_seconds("timeout_s", self.timeout_s)
        self._refused: frozenset[str] = frozenset()  # fields that the server refuses
        self._limit_name = "max_tokens"
        address = urlsplit(self.base_url)
        if "@" in address.netloc or address.query:
            raise InvalidArgumentError(
                "base_url is written to records, so it must not contain a user, a password or a "
                "query; set the environment variable OPENAI_API_KEY"
            )
        self._key = os.environ.get("OPENAI_API_KEY", "")
        if not self._key and address.hostname not in _LOOPBACK:
            raise InvalidArgumentError(
                f"{self.base_url} needs an API key; set the environment variable OPENAI_API_KEY "
                "(to any text if the server checks no key), or name another server (--base-url)"
            )
        self._client = self._connected()  # now, so that wrong proxy settings are found at once

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles only the arguments, without the key and the connections."""
        return type(self), tuple(getattr(self, attribute.name) for attribute in fields(self))

    async def complete(self, request: Mapping[str, Any]) -> Completion:
        """Returns the reply to a request in the form of OpenAI's chat completions.

        Raises:
            PromptTooLongError: The prompt is longer than the model's context.
            ModelError: All retries failed, or the server refuses the request.
        """
        openai = self._openai
        start_s = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout_s):
                data, num_retries = await self._send(request)
            return read_reply(data, self.prices, time.perf_counter() - start_s, num_retries)
        except (TimeoutError, openai.APITimeoutError):
            raise ModelError(
                f"no reply from {self.base_url} in {self.timeout_s:g} s; increase timeout_s",
                "timeout",
            ) from None
        except openai.APIStatusError as problem:
            status = problem.status_code
            failure = model_error(status, f"{status} {problem.response.text}")
        except openai.APIError as problem:
            failure = ModelError(str(problem))
        except ModelError as problem:
            failure = problem
        text = str(failure)
        if self._key:  # `public_text` does not mask short keys
            text = text.replace(self._key, "[key]")
        raise type(failure)(f"{self.base_url}: {public_text(text):.1000}", failure.error_class)

    async def _send(self, request: Mapping[str, Any]) -> tuple[Any, int]:
        """Returns the JSON of the response, and the number of retries.

        A request that the server refuses is changed by `accepted_request` and sent again. Later
        requests omit the fields that the server refused.
        """
        full_body = {**request, **TOKEN_FLAGS}
        full_body = {name: value for name, value in full_body.items() if name not in self._refused}
        if "max_tokens" in full_body:
            full_body[self._limit_name] = full_body.pop("max_tokens")
        body = full_body
        while True:
            try:
                reply = await self._post(body)
            except self._openai.APIStatusError as problem:
                text = problem.response.text or str(problem)
                is_invalid = problem.status_code in INVALID
                changed_body = accepted_request(body, text) if is_invalid else None
                if changed_body is None:
                    raise
                body = changed_body
            else:
                self._remember(full_body.keys() - body.keys())
                return reply

    def _remember(self, refused_fields: Set[str]) -> None:
        """Remembers the fields that had to be removed before the server accepted a request."""
        if "max_tokens" in refused_fields:
            self._limit_name = "max_completion_tokens"
        if omitted_fields := refused_fields - {"max_tokens"}:
            self._refused |= omitted_fields
            names = ", ".join(sorted(omitted_fields))
            _log.warning("%s refuses the fields %s; later requests omit them", self.base_url, names)

    def _connected(self) -> Any:
        return self._openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=self._key or "none",
            timeout=None,  # `complete` limits the time of all retries together
            max_retries=self.max_retries,
        )

    async def _post(self, body: Mapping[str, Any]) -> tuple[Any, int]:
        if self._client is None:
            self._client = self._connected()
        # In `extra_body`, because the client converts messages in the argument `messages`.
        response = await self._client.chat.completions.with_raw_response.create(
            model=body["model"], messages=[], extra_body=dict(body)
        )
        try:
            return json.loads(response.content), response.retries_taken
        except ValueError:
            return response.content, response.retries_taken

    async def close(self) -> None:
        """Closes the connections; idempotent. A later request opens new connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def get_client(
    base_url: str | None = None, timeout_s: float = 600.0, prices: Prices | None = None
) -> OpenAIClient:
    """Returns the client of a server, by default OpenAI's.

    Raises:
        InvalidArgumentError: The address is malformed, or no server listens at an address on this
            machine.
        MissingDependencyError: The extra ``llm`` is not installed.
    """
    base_url = base_url or OPENAI_URL
    try:
        address = urlsplit(base_url)
        if not (address.scheme.startswith("http") and address.hostname):
            raise ValueError("the address must begin with http:// or https://")
        if address.hostname in _LOOPBACK:
            port = address.port or (443 if address.scheme == "https" else 80)
            socket.create_connection((address.hostname, port), timeout=10).close()
    except (OSError, ValueError) as problem:
        raise InvalidArgumentError(
            f"cannot connect to {base_url}: {problem}; start the server, or correct the address"
        ) from None
    return OpenAIClient(base_url, timeout_s, prices=prices)
