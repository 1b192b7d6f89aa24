"""The capture endpoint of one episode: Chat Completions and Responses on a UNIX socket."""

import hmac
import http.server
import json
import secrets
import select
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Any

from coding_gym.agents.capture import CapturedRequests
from coding_gym.agents.capture_request import model_request
from coding_gym.agents.live_episode import (
    PromptTooLongError,
    RequestRefusedError,
    public_text,
)
from coding_gym.agents.responses_api import chat_body, response_body, response_events

END_PATH = "/end"
"""A request for this path gets a reply when the harness has to end."""

_MAX_BODY_BYTES = 8 << 20
_MAX_CONNECTIONS = 64
_MAX_READ = 4  # requests that are read at one time; parsed JSON takes 20 times its size
_IDLE_S = 3600.0
# Of a response: fields that are recorded, and that a harness does not need.
_RECORDED = ("prompt_token_ids", "token_ids", "response_token_ids", "meta_info")
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


class CaptureEndpoint(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves the requests of one episode's harness until it is closed, each in a thread.

    Args:
        requests: Sends them on, and records them.

    Attributes:
        path: The UNIX socket.
        api_key: The bearer token; requests with another one get 401.
        ending: Set it to answer ``END_PATH``.
        reading: Is held while a body is read.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, requests: CapturedRequests) -> None:
        self.requests = requests
        self.api_key = secrets.token_urlsafe(32)
        self.ending = threading.Event()
        self.reading = threading.BoundedSemaphore(_MAX_READ)
        self._slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        self._folder = tempfile.TemporaryDirectory(prefix="coding_gym-")
        self.path = Path(self._folder.name, "model.sock")
        super().__init__(str(self.path), _Handler)
        self._thread = threading.Thread(
            target=self.serve_forever, name="capture-endpoint", daemon=True
        )
        self._thread.start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Starts the thread of a connection; closes the connection where there are too many."""
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # this process may start no further thread
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a connection that the harness has broken."""

    def close(self) -> None:
        """Cancels the requests that wait, and stops; idempotent."""
        self.ending.set()
        self.requests.close()
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()
        self._folder.cleanup()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: CaptureEndpoint
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S

    def do_GET(self) -> None:
        if not self._is_allowed():
            return
        if self.path == END_PATH:
            self.server.ending.wait()
            self._json({})
        else:
            self._error(404, "unknown path")

    def do_POST(self) -> None:
        if not self._is_allowed():
            return
        length = int(self.headers.get("Content-Length") or -1)
        if not 0 <= length <= _MAX_BODY_BYTES:
            self._error(413, f"the body needs a length of at most {_MAX_BODY_BYTES} bytes")
            return
        route = self.path.partition("?")[0]
        if route not in ("/v1/chat/completions", "/v1/responses"):
            self._error(404, "unknown path")
            return
        is_chat = route == "/v1/chat/completions"
        try:
            with self.server.reading:
                body = json.loads(self.rfile.read(length))
                request = model_request(body if is_chat else chat_body(body))
        except _UNREADABLE as wrong:
            self._error(400, f"the request cannot be read: {wrong}")
            return
        completion = self._completion(request)
        if completion is None:
            return
        streams = bool(body.get("stream"))
        if is_chat:
            has_usage = bool((body.get("stream_options") or {}).get("include_usage"))
            chunks = _chunks(completion, has_usage=has_usage)
            self._reply(completion, chunks, streams=streams, end="[DONE]")
        else:
            response = response_body(completion)
            self._reply(response, response_events(response), streams=streams)

    def _completion(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the completion without the fields that are recorded; None after an error."""
        try:
            reply = self.server.requests.ask_from_thread(request, self._has_left)
        except PromptTooLongError as problem:
            message = f"maximum context length exceeded: {problem}"
            self._error(400, message, "context_length_exceeded")
        except RequestRefusedError as problem:
            self._error(400, public_text(str(problem)))
        except CancelledError:
            self._error(401, "the episode is over")
        except Exception as problem:  # noqa: BLE001 - `CapturedRequests` keeps it for the record
            # No further reply will come, and no client sends again after this status.
            self._error(401, public_text(str(problem)))
        else:
            hidden = _RECORDED if request.get("logprobs") else (*_RECORDED, "logprobs")
            choice = reply.response["choices"][0]
            choice = {name: value for name, value in choice.items() if name not in hidden}
            fields = {k: v for k, v in reply.response.items() if k not in hidden}
            return {**fields, "choices": [choice]}
        return None

    def _has_left(self) -> bool:
        """Whether the client has closed the connection."""
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _is_allowed(self) -> bool:
        token = self.headers.get("Authorization", "").partition(" ")[2]
        if hmac.compare_digest(token.encode(), self.server.api_key.encode()):
            return True
        self._error(401, "the API key is not that of this episode")
        return False

    def _reply(
        self, body: Any, events: Iterator[dict[str, Any]], *, streams: bool, end: str = ""
    ) -> None:
        if not streams:
            self._json(body)
            return
        lines = [
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            if "type" in event
            else f"data: {json.dumps(event)}\n\n"
            for event in events
        ]
        text = "".join([*lines, f"data: {end}\n\n" if end else ""])
        self._send(200, text, "text/event-stream")

    def _error(self, status: int, message: str, code: str | None = None) -> None:
        self.close_connection = True  # its body may be unread
        error = {"message": message, "type": "invalid_request_error", "code": code, "param": None}
        self._json({"error": error}, status)

    def _json(self, body: Any, status: int = 200) -> None:
        self._send(status, json.dumps(body, default=str), "application/json")

    def _send(self, status: int, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if status >= 400:
            self.send_header("x-should-retry", "false")  # OpenAI's clients obey it
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Logs nothing: a harness could flood the log."""


def _chunks(completion: Mapping[str, Any], *, has_usage: bool) -> Iterator[dict[str, Any]]:
    """Yields the chunks of a stream that gives a completion at once, its usage last if wanted."""
    (choice,) = completion["choices"]
    delta = dict(choice["message"])
    if delta.get("tool_calls"):
        calls = enumerate(delta["tool_calls"])
        delta["tool_calls"] = [{"index": index, **call} for index, call in calls]
    rest = {k: v for k, v in choice.items() if k != "message"}
    base = {**completion, "object": "chat.completion.chunk"}
    yield {**base, "usage": None, "choices": [{**rest, "delta": delta}]}
    if has_usage:
        yield {**base, "choices": []}
