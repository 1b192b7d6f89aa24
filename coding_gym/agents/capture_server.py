"""The HTTP server of one episode's harness: Chat Completions and Responses on a UNIX socket.

A response contains only the recorded reply. Other fields of the model server's response, such as
token ids, are not sent to the harness.
"""

import asyncio
import hmac
import http.client
import json
import secrets
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from io import BytesIO
from typing import Any

from coding_gym.agents.capture import CapturedRequests
from coding_gym.agents.capture_request import model_request
from coding_gym.agents.live_episode import PromptTooLongError, RequestRefusedError, public_text
from coding_gym.agents.model_reply import Reply
from coding_gym.agents.responses_api import chat_body, response_body, response_events
from coding_gym.sandbox.forwarding import short_path
from coding_gym.sandbox.ownership import make_folder, remove_folder

_CHAT, _RESPONSES = "/v1/chat/completions", "/v1/responses"
_MAX_BODY_BYTES = 8 << 20
# Since Python 3.13, closing a server removes its socket by the short path, which is then invalid.
_KEEP_SOCKET: dict[str, Any] = {} if sys.version_info < (3, 13) else {"cleanup_socket": False}
_MAX_READS = 4  # requests parsed at the same time; parsed JSON takes 20 times its size
_PARSE_ERRORS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
_CONNECTION_ERRORS = (OSError, EOFError, asyncio.LimitOverrunError, http.client.HTTPException)


class _HTTPError(Exception):
    """An error response to a request."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class CaptureEndpoint:
    """Serves the requests of one episode's harness, in the event loop of the episode.

    Args:
        requests: Sends and records the requests.

    Attributes:
        path: The UNIX socket.
        api_key: The bearer token; requests with any other token get 401.
    """

    def __init__(self, requests: CapturedRequests) -> None:
        self.requests = requests
        self.api_key = secrets.token_urlsafe(32)
        folder = make_folder("model")
        self._remove = weakref.finalize(self, remove_folder, folder)
        self.path = folder / "socket"
        self._reading = asyncio.Semaphore(_MAX_READS)
        self._connections: set[asyncio.Task[None]] = set()  # limited by the sandbox's forwarder

    async def start(self) -> None:
        """Opens the socket."""
        with short_path(self.path) as name:
            self._server = await asyncio.start_unix_server(
                self._connect, name, backlog=128, **_KEEP_SOCKET
            )

    async def close(self) -> None:
        """Cancels the pending requests, and closes connections and the socket; idempotent."""
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._remove()

    def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.ensure_future(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads one request from a connection, and writes its response."""
        try:
            with suppress(*_CONNECTION_ERRORS, asyncio.CancelledError):
                writer.write(await self._response(reader))
                await writer.drain()
        finally:
            writer.close()

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        try:
            return _response(200, *await self._handle(head, reader))
        except _HTTPError as problem:
            error = {"type": "invalid_request_error", "code": problem.code, "param": None}
            text = json.dumps({"error": {"message": str(problem), **error}})
            return _response(problem.status, "application/json", text)

    async def _handle(self, head: bytes, reader: asyncio.StreamReader) -> tuple[str, str]:
        """Returns the content type and the text of the response to a request."""
        request_line, _, header_lines = head.partition(b"\r\n")
        headers = http.client.parse_headers(BytesIO(header_lines))
        length = headers.get("Content-Length", "0")
        if not (length.isdecimal() and len(length) < 10 and int(length) <= _MAX_BODY_BYTES):
            raise _HTTPError(413, f"Content-Length must be up to {_MAX_BODY_BYTES}, got {length!r}")
        token = headers.get("Authorization", "").partition(" ")[2]
        method, target, *_ = [*request_line.decode("latin-1").split(" "), ""]
        route = target.partition("?")[0]
        async with self._reading:
            data = await reader.readexactly(int(length))  # clients send all before they read
            if not hmac.compare_digest(token.encode(), self.api_key.encode()):
                raise _HTTPError(401, "the API key must be the key of this episode")
            if method != "POST" or route not in (_CHAT, _RESPONSES):
                raise _HTTPError(404, f"only POST to {_CHAT} and {_RESPONSES} is supported")
            try:
                body = await asyncio.to_thread(json.loads, data)
                request = model_request(body if route == _CHAT else chat_body(body))
                streams = bool(body.get("stream"))
            except _PARSE_ERRORS as problem:
                raise _HTTPError(400, f"the request cannot be read: {problem}") from None
        reply = await self._reply(request, lambda: not reader.at_eof())
        completion = {
            "id": f"chatcmpl-{len(self.requests.replies)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body.get("model"),
            **_fields(reply),
        }
        if route == _RESPONSES:
            response = response_body(completion)
            events: Iterable[dict[str, Any]] = response_events(response)
        else:
            response = completion
            events = [_chunk(completion)]
        if streams:
            return "text/event-stream", _stream(events, "[DONE]" if route == _CHAT else "")
        return "application/json", json.dumps(response)

    async def _reply(self, request: dict[str, Any], is_connected: Callable[[], bool]) -> Reply:
        try:
            return await self.requests.ask(request, is_connected)
        except PromptTooLongError as problem:
            message = f"maximum context length exceeded: {problem}"
            raise _HTTPError(400, message, "context_length_exceeded") from None
        except RequestRefusedError as problem:
            raise _HTTPError(400, public_text(str(problem))) from None
        except Exception as problem:  # `CapturedRequests` has recorded it
            # All further requests fail too, and clients do not retry after this status.
            raise _HTTPError(401, public_text(str(problem))) from problem


def _fields(reply: Reply) -> dict[str, Any]:
    """Returns the fields ``choices`` and ``usage`` of a chat completion."""
    message, call, calls = reply.message, reply.call, reply.action.calls
    num_prompt, num_sampled = call.prompt_tokens or 0, call.completion_tokens or 0
    reason = "tool_calls" if calls and not reply.action.is_cut else call.finish_reason
    choice = {
        "index": 0,
        "message": {**message, "content": message["content"] or None},
        "finish_reason": reason or "stop",
    }
    counts = {"prompt_tokens": num_prompt, "completion_tokens": num_sampled}
    return {"choices": [choice], "usage": {**counts, "total_tokens": num_prompt + num_sampled}}


def _response(status: int, kind: str, text: str) -> bytes:
    """Returns an HTTP response."""
    data = text.encode()
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {kind}"]
    lines += [f"Content-Length: {len(data)}", "Connection: close"]
    if status >= 400:
        lines.append("x-should-retry: false")  # stops retries of OpenAI's clients
    return "\r\n".join([*lines, "", ""]).encode() + data


def _stream(events: Iterable[dict[str, Any]], end: str) -> str:
    """Returns the text of server-sent events; ``end`` is the data of the last event."""
    texts = []
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        texts.append(f"{name}data: {json.dumps(event)}\n\n")
    return "".join([*texts, f"data: {end}\n\n" if end else ""])


def _chunk(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a completion as the only chunk of a stream."""
    (choice,) = completion["choices"]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        calls = enumerate(delta["tool_calls"])
        delta["tool_calls"] = [{"index": index, **call} for index, call in calls]
    streamed = {"index": 0, "delta": delta, "finish_reason": choice["finish_reason"]}
    return {**completion, "object": "chat.completion.chunk", "choices": [streamed]}
