"""The capture endpoint: forwards the requests of one episode's harness, and records the replies.

It serves Chat Completions and the Responses API on a UNIX socket. A response contains only the
recorded reply. Other fields of the model server's response, such as token ids, are not sent to the
harness.
"""

import asyncio
import hmac
import http.client
import json
import secrets
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from io import BytesIO
from typing import Any, Self

from coding_gym.action import Completion
from coding_gym.agents.harness_api import RESPONSES, ROUTES, chat_body, model_request, response_text
from coding_gym.agents.model_errors import PromptTooLongError, RequestRefusedError, public_text
from coding_gym.agents.past_chats import PastChats, plain_message
from coding_gym.agents.player import Complete, LiveEpisode
from coding_gym.errors import EpisodeError
from coding_gym.sandbox.forwarding import short_path
from coding_gym.sandbox.ownership import make_folder, remove_folder
from coding_gym.trajectory import Message, StopReason

_MAX_BODY_BYTES = 8 << 20
# Since Python 3.13, `Server.close` removes the socket by the short path, which is then invalid.
_KEEP_SOCKET: dict[str, Any] = {} if sys.version_info < (3, 13) else {"cleanup_socket": False}
_MAX_READS = 4  # requests parsed at the same time; parsed JSON takes 20 times its size
_PARSE_ERRORS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
_CONNECTION_ERRORS = (OSError, EOFError, asyncio.LimitOverrunError, http.client.HTTPException)


class CapturedRequests:
    """Sends the requests of one episode's harness within the episode's limits.

    Requests are sent one at a time; the limits are checked before each request. Limits apply to the
    replies (as turns), the tool calls in replies, the tokens of the last prompt and its reply, and
    the time since the first request. If the client disconnects during its request, the reply counts
    towards the limits and is not recorded.

    Args:
        live: The episode.
        complete: Sends a request to the model and returns its reply.

    Attributes:
        failure: The error after which no request is sent, or None. After a prompt that is too long,
            or a request that the server refuses after the first reply, requests are still sent.
        limit: The limit after which no request is sent, or None.
        is_too_long: Whether a prompt was longer than the model's context.
        refused: An event that is set when this object stops sending requests.
    """

    def __init__(self, live: LiveEpisode, complete: Complete) -> None:
        self.failure: Exception | None = None
        self.limit: StopReason | None = None
        self.is_too_long = False
        self.refused = asyncio.Event()
        self._live, self._complete = live, complete
        self._sending = asyncio.Lock()
        self._chats = PastChats(_key)

    @property
    def num_replies(self) -> int:
        """Number of recorded replies."""
        return len(self._live.episode.turns)

    async def ask(
        self, body: dict[str, Any], is_connected: Callable[[], bool] = lambda: True
    ) -> Completion:
        """Sends a request, records the reply as a turn, and returns the reply.

        Args:
            body: The request's body.
            is_connected: Returns whether the client still waits for the reply.

        Raises:
            EOFError: The client disconnected before its request was sent; no usage is counted.
            EpisodeError, InvalidArgumentError: A limit is reached, or cannot be enforced.
            ModelError: This or an earlier request failed.
        """
        async with self._sending:
            if not is_connected():
                raise EOFError("the client has disconnected")
            self._check_limits()
            if self.failure is not None:
                raise self.failure
            try:
                reply = await self._complete(body)
                self._live.episode.count_reply(reply)
            except PromptTooLongError:
                self.is_too_long = True
                raise
            except Exception as failure:  # recorded, and raised again
                if not (isinstance(failure, RequestRefusedError) and self.num_replies):
                    self.failure = failure
                    self.refused.set()
                raise
            if is_connected():
                self._record(body, reply)
            return reply

    def _check_limits(self) -> None:
        """Raises EpisodeError if a limit is reached."""
        self.limit = self.limit or self._live.episode.reached_limit()
        if self.limit:
            self.refused.set()
            raise EpisodeError(f"the episode has reached {self.limit}; no request is sent")

    def _record(self, body: dict[str, Any], reply: Completion) -> None:
        """Records a reply as a turn with the messages after the chat that the request continues."""
        episode = self._live.episode
        episode.tools = body.get("tools") or episode.tools
        messages = [plain_message(message) for message in body["messages"]]
        length, number = self._chats.find(messages)
        turn = episode.record_turn(reply, messages[length:], number)
        self._chats.add([*messages, *turn.messages], self.num_replies - 1)
        self._live.on_turn(turn)


def _key(message: Message) -> str:
    """Returns role, content and call ids as JSON; not arguments, which harnesses can change."""
    ids = [call.get("id") for call in message.get("tool_calls", ())]
    return json.dumps([message["role"], message["content"], ids])


class _HTTPError(Exception):
    """An error response to a request."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class CaptureEndpoint:
    """Serves the requests of one episode's harness, in the event loop of the episode.

    ``async with`` opens the socket and closes the endpoint.

    Args:
        requests: Sends and records the requests.
        grace_s: Seconds from the event ``requests.refused`` until the endpoint closes, which ends
            the harness.

    Attributes:
        path: The UNIX socket.
        api_key: The bearer token; requests with any other token get 401.
    """

    def __init__(self, requests: CapturedRequests, grace_s: float) -> None:
        self.api_key = secrets.token_urlsafe(32)
        folder = make_folder("model")
        self._remove = weakref.finalize(self, remove_folder, folder)
        self.path = folder / "socket"
        self._requests, self._grace_s = requests, grace_s
        self._reading = asyncio.Semaphore(_MAX_READS)
        self._connections: set[asyncio.Task[None]] = set()  # the forwarder limits their number

    async def __aenter__(self) -> Self:
        with short_path(self.path) as name:
            self._server = await asyncio.start_unix_server(
                self._connect, name, backlog=128, **_KEEP_SOCKET
            )
        self._watchdog = asyncio.create_task(self._close_after_refusal())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watchdog.cancel()
        await self._close()

    async def _close_after_refusal(self) -> None:
        await self._requests.refused.wait()
        await asyncio.sleep(self._grace_s)
        await self._close()

    async def _close(self) -> None:
        """Cancels the pending requests, and closes connections and the socket; idempotent."""
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._remove()

    def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
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
        if "Transfer-Encoding" in headers:
            raise _HTTPError(411, "a request must have Content-Length instead of Transfer-Encoding")
        length = headers.get("Content-Length", "0")
        if not (length.isdecimal() and len(length) < 10 and int(length) <= _MAX_BODY_BYTES):
            raise _HTTPError(413, f"Content-Length must be up to {_MAX_BODY_BYTES}, got {length!r}")
        token = headers.get("Authorization", "").partition(" ")[2]
        method, target, *_ = [*request_line.decode("latin-1").split(" "), ""]
        route = target.partition("?")[0]
        async with self._reading:
            # Before any error, because clients read a response only after they have sent all data.
            data = await reader.readexactly(int(length))
            if not hmac.compare_digest(token.encode(), self.api_key.encode()):
                raise _HTTPError(401, "the API key must be the key of this episode")
            if method != "POST" or route not in ROUTES:
                raise _HTTPError(404, f"only POST to {' and '.join(ROUTES)} is supported")
            try:
                body = await asyncio.to_thread(json.loads, data)
                request = model_request(chat_body(body) if route == RESPONSES else body)
            except _PARSE_ERRORS as problem:
                raise _HTTPError(400, f"the request cannot be read: {problem}") from None
        reply = await self._reply(request, lambda: not reader.at_eof())
        return response_text(route, body, reply, self._requests.num_replies)

    async def _reply(self, request: dict[str, Any], is_connected: Callable[[], bool]) -> Completion:
        try:
            return await self._requests.ask(request, is_connected)
        except PromptTooLongError as problem:
            message = f"maximum context length exceeded: {problem}"
            raise _HTTPError(400, message, "context_length_exceeded") from None
        except RequestRefusedError as problem:
            raise _HTTPError(400, public_text(str(problem))) from None
        except Exception as problem:  # `CapturedRequests` has recorded it
            # All further requests fail too, and clients do not retry after this status.
            raise _HTTPError(401, public_text(str(problem))) from problem


def _response(status: int, kind: str, text: str) -> bytes:
    """Returns an HTTP response."""
    data = text.encode()
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {kind}"]
    lines += [f"Content-Length: {len(data)}", "Connection: close"]
    if status >= 400:
        lines.append("x-should-retry: false")  # stops retries of OpenAI's clients
    return "\r\n".join([*lines, "", ""]).encode() + data
