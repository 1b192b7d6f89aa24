"""The HTTP server of `coding_gym.adapters.capture`: Chat Completions and Responses API."""

import asyncio
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coding_gym.adapters.responses_api import chat_body, response_body, response_events
from coding_gym.agents.harness import HarnessRequests
from coding_gym.agents.live_episode import LiveEpisode, PromptTooLongError, public_text
from coding_gym.agents.model_reply import Reply
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.optional import import_extra
from coding_gym.trajectory import StopReason

if TYPE_CHECKING:
    from concurrent.futures import Future

# Of a response: what the record keeps and an agent has no use for.
_RECORDED = ("prompt_token_ids", "token_ids", "response_token_ids", "meta_info")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the agent of one episode sends its requests.

    Attributes:
        base_url: Address of the API, on the loopback interface.
        api_key: The bearer token of this episode; no other one is accepted, and it is valid until
            the agent returns.
    """

    base_url: str
    api_key: str = field(repr=False)


class LimitedRequests:
    """The requests of one episode's agent, within the episode's limits.

    Made in the event loop of the episode, where requests are sent from.

    Args:
        live: The episode, for its limits.
        requests: Sends them.

    Attributes:
        requests: As given.
        limit: The limit that a request was refused for, or None.
    """

    def __init__(self, live: LiveEpisode, requests: HarnessRequests) -> None:
        self.requests = requests
        self.limit: StopReason | None = None
        self._bounds, self._ends_at = live.episode.bounds, float("inf")
        if self._bounds.max_seconds is not None:
            self._ends_at = time.monotonic() + self._bounds.max_seconds
        self._num_requests = self._num_tokens = 0
        self._loop = asyncio.get_running_loop()
        self._pending: set[Future[Reply]] = set()
        self._is_closed = False

    async def ask(self, body: dict[str, Any]) -> Reply:
        """Returns the reply to a request; is called in another event loop than the episode's."""
        future = asyncio.run_coroutine_threadsafe(self._ask(body), self._loop)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Cancels the requests that wait, and refuses further ones."""
        self._is_closed = True
        for future in [*self._pending]:
            future.cancel()

    async def _ask(self, body: dict[str, Any]) -> Reply:
        self.limit = self.limit or self._spent()
        if self.limit or self._is_closed:
            raise EpisodeError(f"the episode is over: {self.limit or 'the agent has ended'}")
        self._num_requests += 1
        reply = await self.requests.ask(body)
        self._num_tokens = (reply.call.prompt_tokens or 0) + (reply.call.completion_tokens or 0)
        return reply

    def _spent(self) -> StopReason | None:
        bounds = self._bounds
        if bounds.max_turns is not None and self._num_requests >= bounds.max_turns:
            return StopReason.MAX_TURNS
        if bounds.max_tokens is not None and self._num_tokens >= bounds.max_tokens:
            return StopReason.MAX_TOKENS
        return StopReason.MAX_TIME if time.monotonic() >= self._ends_at else None


class CaptureServer:
    """Serves the endpoints of all episodes of a process, on a free port of 127.0.0.1.

    An episode is known by its bearer token, so that no program of another episode can ask in its
    name. The server runs in a thread of its own.

    Args:
        model: The model's name, for ``GET /v1/models``.

    Raises:
        MissingDependencyError: FastAPI or uvicorn is not installed.
    """

    def __init__(self, model: str = "model") -> None:
        uvicorn, fastapi = (import_extra(name, "serve") for name in ("uvicorn", "fastapi"))
        self._response = import_extra("fastapi.responses", "serve").Response
        self._model = model
        self._episodes: dict[str, LimitedRequests] = {}
        app = fastapi.FastAPI(openapi_url=None)
        for path, method, answer in (
            ("/v1/models", "GET", self._models),
            ("/v1/chat/completions", "POST", self._chat),
            ("/v1/responses", "POST", self._responses),
        ):
            app.add_route(path, self._handler(answer), methods=[method])
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.base_url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=2
        )
        self._server = uvicorn.Server(config)
        run = {"sockets": [self._listening]}
        self._thread = threading.Thread(target=self._server.run, kwargs=run, daemon=True)
        self._thread.start()

    @contextmanager
    def open(self, limited: LimitedRequests) -> Iterator[Endpoint]:
        """Gives the endpoint of one episode, which is closed behind the block."""
        token = secrets.token_urlsafe(32)
        self._episodes[token] = limited
        try:
            yield Endpoint(self.base_url, token)
        finally:
            del self._episodes[token]
            limited.close()

    def close(self) -> None:
        """Stops the server; idempotent."""
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()

    def _handler(
        self, answer: Callable[[LimitedRequests, dict[str, Any]], Any]
    ) -> Callable[[Any], Any]:
        async def handle(request: Any) -> Any:
            _, _, token = request.headers.get("authorization", "").partition(" ")
            limited = self._episodes.get(token)
            if limited is None:
                return self._error(401, "the API key is not that of a running episode")
            try:
                return await answer(limited, json.loads(await request.body() or b"{}"))
            except PromptTooLongError as problem:
                message = f"maximum context length exceeded: {problem}"
                return self._error(400, message, "context_length_exceeded")
            except (InvalidArgumentError, ValueError, TypeError, KeyError, AttributeError) as wrong:
                return self._error(400, f"the request cannot be read: {wrong!r}")
            except asyncio.CancelledError:
                return self._error(401, "the episode is over")
            except Exception as problem:  # noqa: BLE001 - `HarnessRequests` keeps it for the record
                # No further reply will come, and this status is one that no client tries again at.
                return self._error(401, public_text(str(problem)))

        return handle

    async def _models(self, _: LimitedRequests, __: dict[str, Any]) -> Any:
        model = {"id": self._model, "object": "model", "created": 0, "owned_by": "coding_gym"}
        return self._json({"object": "list", "data": [model]})

    async def _chat(self, limited: LimitedRequests, body: dict[str, Any]) -> Any:
        completion, streams = await self._complete(limited, body)
        return self._events(_chunks(completion), "[DONE]") if streams else self._json(completion)

    async def _responses(self, limited: LimitedRequests, body: dict[str, Any]) -> Any:
        completion, _ = await self._complete(limited, chat_body(body))
        response = response_body(completion)
        return (
            self._events(response_events(response)) if body.get("stream") else self._json(response)
        )

    async def _complete(
        self, limited: LimitedRequests, body: dict[str, Any]
    ) -> tuple[dict[str, Any], bool]:
        """Returns a completion without what is recorded, and whether the agent wants a stream."""
        if not body["messages"] or (body.get("n") or 1) != 1:
            raise InvalidArgumentError("there must be messages, and n must be 1")
        most = body.pop("max_completion_tokens", None)
        if most:
            body["max_tokens"] = most
        streams, _ = bool(body.pop("stream", False)), body.pop("stream_options", None)
        completion = dict((await limited.ask(body)).response)
        hidden = _RECORDED if body.get("logprobs") else (*_RECORDED, "logprobs")
        choice = {k: v for k, v in completion["choices"][0].items() if k not in hidden}
        fields = {k: v for k, v in completion.items() if k not in hidden}
        return {**fields, "choices": [choice]}, streams

    def _error(self, status: int, message: str, code: str | None = None) -> Any:
        error = {"message": message, "type": "invalid_request_error", "code": code, "param": None}
        return self._json({"error": error}, status)

    def _json(self, body: Any, status: int = 200) -> Any:
        headers = {"x-should-retry": "false"} if status >= 400 else None  # OpenAI's clients obey it
        text = json.dumps(body, default=str)
        return self._response(text, status, headers, "application/json")

    def _events(self, events: Iterator[dict[str, Any]], end: str = "") -> Any:
        lines = [
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            if "type" in event
            else f"data: {json.dumps(event)}\n\n"
            for event in events
        ]
        text = "".join([*lines, f"data: {end}\n\n" if end else ""])
        return self._response(text, 200, None, "text/event-stream")


def _chunks(completion: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the chunks of a stream that gives a completion at once."""
    (choice,) = completion["choices"]
    delta = dict(choice["message"])
    if delta.get("tool_calls"):
        calls = enumerate(delta["tool_calls"])
        delta["tool_calls"] = [{"index": index, **call} for index, call in calls]
    rest = {k: v for k, v in choice.items() if k != "message"}
    base = {**completion, "object": "chat.completion.chunk"}
    yield {**base, "usage": None, "choices": [{**rest, "delta": delta}]}
    yield {**base, "choices": []}
