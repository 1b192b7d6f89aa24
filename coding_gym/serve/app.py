"""Sessions over HTTP and WebSocket, with tokens, limits, metrics and an orderly end.

| request | answer |
|---|---|
| ``POST /v1/sessions`` ``{"env": {…}, "wrappers": […]}`` | id and spaces of a new session |
| ``POST /v1/sessions/ID/CALL`` | `coding_gym.serve.sessions.CALLS`, and ``fork`` |
| ``DELETE /v1/sessions/ID`` | closes it |
| ``GET /v1/sessions``, ``GET /v1/tasks`` | the client's sessions; the ids of the tasks |
| ``/v1/socket`` | the same by WebSocket: ``{"id", "call", "session", "arguments"}`` |
| ``GET /health``, ``GET /ready`` | without a token: it runs; it opens sessions |
| ``GET /metrics`` | Prometheus |

An error is ``{"error": {"type": a class of coding_gym.errors, "message": …}}``.
"""

import asyncio
import contextlib
import hmac
import json
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import gymnasium as gym

from coding_gym.arguments import check_arguments
from coding_gym.errors import (
    CodingGymError,
    EpisodeError,
    InvalidArgumentError,
    MachineryError,
    UnknownNameError,
    UnknownTaskError,
)
from coding_gym.optional import import_extra
from coding_gym.serve.sessions import CALLS, SessionLimitError, Sessions, UnknownSessionError

_EXTRA = "serve"
_REAP_EVERY_S = 1.0
_KEEP_ALIVE_S = 300  # of a connection between two calls: models think for long
_MAX_IN_FLIGHT = 256  # calls of one socket
_STATUS = {
    UnknownSessionError: 404,
    UnknownNameError: 400,
    UnknownTaskError: 400,
    SessionLimitError: 429,
    EpisodeError: 409,
    MachineryError: 503,
    CodingGymError: 400,
    gym.error.ResetNeeded: 409,
    gym.error.Error: 400,
    RecursionError: 400,
}
_REFUSALS = {  # by whether a token was sent; a web socket's close takes 123 bytes
    False: "send the server's token, as Authorization: Bearer TOKEN; RemoteEnv takes token=",
    True: "the server does not know this token; send the one that it printed or was started with",
}

_log = logging.getLogger(__name__)


class Server:
    """An ASGI application around `Sessions`.

    Args:
        sessions: What is served.
        tokens: The secret of each client, by its name.
        max_body_bytes: The most that a request may hold.
        workers: The most calls at one time; others wait.
        body_timeout_s: Seconds in which a request's body must be there.

    Attributes:
        app: The application.
        max_body_bytes: As given.

    Raises:
        MissingDependencyError: The extra is not installed.
    """

    def __init__(
        self,
        sessions: Sessions,
        tokens: Mapping[str, str],
        *,
        max_body_bytes: int = 1 << 23,
        workers: int = 256,
        body_timeout_s: float = 30.0,
    ) -> None:
        self._sessions, self._tokens = sessions, dict(tokens)
        self.max_body_bytes, self._body_timeout_s = max_body_bytes, body_timeout_s
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="session")
        self._metrics = _Metrics(sessions)
        self._responses = import_extra("starlette.responses", _EXTRA)
        routing = import_extra("starlette.routing", _EXTRA)
        mine = self._permitted
        routes = [
            routing.Route("/health", self._health),
            routing.Route("/ready", self._ready),
            routing.Route("/metrics", mine(self._show_metrics)),
            routing.Route("/v1/tasks", mine(self._list_tasks)),
            routing.Route("/v1/sessions", mine(self._list_or_open), methods=["GET", "POST"]),
            routing.Route("/v1/sessions/{session}", mine(self._delete), methods=["DELETE"]),
            routing.Route("/v1/sessions/{session}/{call}", mine(self._call), methods=["POST"]),
            routing.WebSocketRoute("/v1/socket", self._socket),
        ]
        for route in routes[:-1]:
            route.methods.discard("HEAD")
        requests = import_extra("starlette.requests", _EXTRA)
        self._gone = requests.ClientDisconnect
        self._turns: dict[str, tuple[asyncio.Lock, list[None]]] = {}
        applications = import_extra("starlette.applications", _EXTRA)
        errors = {404: self._no_such_place, 405: self._no_such_place}
        self.app = applications.Starlette(
            routes=routes, lifespan=self._lifespan, exception_handlers=errors
        )
        self.app.router.redirect_slashes = False

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        reaper = asyncio.create_task(self._reap())
        try:
            yield
        finally:
            reaper.cancel()
            await asyncio.get_running_loop().run_in_executor(None, self._sessions.close_all)
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(_REAP_EVERY_S)
            await asyncio.get_running_loop().run_in_executor(None, self._sessions.reap)

    def _client(self, headers: Mapping[str, str]) -> str:
        """Returns the name of the client whose token was sent, or ""."""
        kind, _, sent = headers.get("authorization", "").partition(" ")
        found = ""
        for name, token in self._tokens.items():  # all of them: the time tells nothing
            if hmac.compare_digest(sent.strip().encode(), token.encode()):
                found = name
        return found if kind.lower() == "bearer" else ""

    @staticmethod
    def _refusal(headers: Mapping[str, str]) -> str:
        """Returns why no client was found."""
        kind, _, sent = headers.get("authorization", "").partition(" ")
        return _REFUSALS[kind.lower() == "bearer" and bool(sent.strip())]

    def _permitted(
        self, answer: Callable[[Any, str], Awaitable[Any]]
    ) -> Callable[[Any], Awaitable[Any]]:
        async def checked(request: Any) -> Any:
            client = self._client(request.headers)
            if not client:
                return self._failed("PermissionError", self._refusal(request.headers), 401)
            return await answer(request, client)

        return checked

    async def _no_such_place(self, request: Any, problem: Any) -> Any:
        said = f"there is no {request.method} {request.url.path!r:.100}; see docs/serve.md"
        return self._failed("UnknownNameError", said, problem.status_code)

    async def _health(self, _: Any) -> Any:
        return self._response({"status": "ok"})

    async def _ready(self, _: Any) -> Any:
        status = "ending" if self._sessions.is_draining else "ready"
        return self._response({"status": status}, 503 if self._sessions.is_draining else 200)

    async def _show_metrics(self, _: Any, __: str) -> Any:
        return self._responses.Response(
            self._metrics.text(), media_type="text/plain; version=0.0.4"
        )

    async def _list_tasks(self, _: Any, __: str) -> Any:
        return self._response({"tasks": self._sessions.task_ids})

    async def _list_or_open(self, request: Any, client: str) -> Any:
        if request.method != "POST":
            return self._response({"sessions": self._sessions.listed(client)})
        return await self._reply_to(request, client, "open", "")

    async def _delete(self, request: Any, client: str) -> Any:
        return await self._reply_to(request, client, "close", request.path_params["session"])

    async def _call(self, request: Any, client: str) -> Any:
        parameters = request.path_params
        return await self._reply_to(request, client, parameters["call"], parameters["session"])

    async def _reply_to(self, request: Any, client: str, name: str, session: str) -> Any:
        try:
            async with asyncio.timeout(self._body_timeout_s):
                body = await self._body(request)
        except TimeoutError:
            return self._failed("MachineryError", "the request did not arrive in time", 408)
        except self._gone:
            return self._failed("MachineryError", "the client has gone", 400)
        if body is None:
            said = f"a request may hold {self.max_body_bytes} bytes"
            return self._failed("InvalidArgumentError", said, 413)
        try:
            arguments = json.loads(body or b"{}")
        except (ValueError, RecursionError) as problem:
            said = f"the request is no JSON: {problem}"
            return self._failed("InvalidArgumentError", said, 400)
        status, answer = await self._run(client, name, session, arguments)
        return self._responses.Response(answer, status, media_type="application/json")

    async def _body(self, request: Any) -> bytes | None:
        """Returns the body, or None where it is too large."""
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self.max_body_bytes:
                return None
            parts.append(part)
        return b"".join(parts)

    async def _run(self, client: str, name: str, session: str, arguments: Any) -> tuple[int, bytes]:
        """Runs a call on a thread; returns the status of HTTP and the answer."""
        began = time.perf_counter()
        work = partial(self._answer, client, name, session, arguments)
        async with self._turn(session):  # who waits for a session holds no thread
            status, answer = await asyncio.get_running_loop().run_in_executor(self._pool, work)
        self._metrics.add(name, status, time.perf_counter() - began)
        return status, answer

    @contextlib.asynccontextmanager
    async def _turn(self, session: str) -> AsyncIterator[None]:
        """Waits until no other call of a session is under way; "" is none."""
        if not session:
            yield
            return
        lock, waiting = self._turns.setdefault(session, (asyncio.Lock(), []))
        waiting.append(None)
        try:
            async with lock:
                yield
        finally:
            waiting.pop()
            if not waiting:
                del self._turns[session]

    def _answer(self, client: str, name: str, session: str, arguments: Any) -> tuple[int, bytes]:
        try:
            if not isinstance(arguments, Mapping):
                raise InvalidArgumentError(f"arguments must be an object, got {arguments!r:.80}")
            return 200, self._called(client, name, session, arguments)
        except tuple(_STATUS) as problem:
            kind = next(kind for kind in _STATUS if isinstance(problem, kind))
            is_order = kind is gym.error.ResetNeeded
            name = "EpisodeError" if is_order else type(problem).__name__
            return _STATUS[kind], _error(name, str(problem))
        except Exception as problem:  # noqa: BLE001 - one call must not end the server
            _log.exception("call %s failed", name)
            return 500, _error("MachineryError", f"the server failed: {type(problem).__name__}")

    def _called(self, client: str, name: str, session: str, arguments: Mapping[str, Any]) -> bytes:
        if name == "open":
            check_arguments("open", arguments, ("env", "wrappers", "key", "number"))
            env, wrappers = arguments.get("env", {}), arguments.get("wrappers", [])
            key = str(arguments.get("key", ""))
            return json.dumps(self._sessions.open(client, env, wrappers, key)).encode()
        if name == "close":
            self._sessions.close(client, session)
            return b"{}"
        if name not in CALLS and name != "fork":
            known = ", ".join([*CALLS, "fork"])
            raise UnknownNameError(f"there is no call {name!r:.60}; there are {known}")
        return self._sessions.call(client, session, name, arguments)

    async def _socket(self, link: Any) -> None:
        client = self._client(link.headers)
        if not client:
            await link.close(4401, self._refusal(link.headers))
            return
        await link.accept()
        running: set[asyncio.Task[None]] = set()
        free = asyncio.Semaphore(_MAX_IN_FLIGHT)

        async def answer(message: Any) -> None:
            try:
                name, session = str(message.get("call")), str(message.get("session", ""))
                arguments = message.get("arguments") or {}
                status, text = await self._run(client, name, session, arguments)
                head = json.dumps({"id": message.get("id"), "status": status})
                with contextlib.suppress(RuntimeError, disconnected):  # the client has gone
                    await link.send_text(f'{head[:-1]}, "answer": {text.decode()}}}')
            finally:
                free.release()

        disconnected = import_extra("starlette.websockets", _EXTRA).WebSocketDisconnect
        try:
            while True:
                message = _object(await link.receive())
                if message is None:
                    await link.close(4400, "a message is a text with a JSON object")
                    return
                await free.acquire()
                task = asyncio.create_task(answer(message))
                running.add(task)
                task.add_done_callback(running.discard)
        except disconnected:
            return
        finally:
            for task in running:  # those that wait are not played
                task.cancel()

    def _response(self, content: Any, status: int = 200) -> Any:
        body = json.dumps(content).encode()
        return self._responses.Response(body, status, media_type="application/json")

    def _failed(self, kind: str, message: str, status: int) -> Any:
        body = _error(kind, message)
        # What is left of the request is not read: the connection must not be used again.
        headers = {"connection": "close"} if status in (408, 413) else None
        return self._responses.Response(body, status, headers, media_type="application/json")


def _object(received: Mapping[str, Any]) -> Any:
    """Returns the JSON object of a message of a web socket, or None."""
    if received["type"] == "websocket.disconnect":
        raise import_extra("starlette.websockets", _EXTRA).WebSocketDisconnect(1000)
    try:
        found = json.loads(received.get("text") or "")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"error": {"type": kind, "message": message}}).encode()


class _Metrics:
    """What Prometheus reads."""

    def __init__(self, sessions: Sessions) -> None:
        client = import_extra("prometheus_client", _EXTRA)
        self._registry = client.CollectorRegistry()
        self._write = client.generate_latest
        gauge = client.Gauge(
            "coding_gym_sessions", "Sessions that are open.", registry=self._registry
        )
        gauge.set_function(lambda: len(sessions))
        self._calls = client.Counter(
            "coding_gym_calls", "Calls, by status.", ["call", "status"], registry=self._registry
        )
        self._seconds = client.Histogram(
            "coding_gym_call_seconds",
            "Seconds of a call, waiting for a worker included.",
            ["call"],
            registry=self._registry,
        )

    def add(self, name: str, status: int, seconds: float) -> None:
        """Counts a call."""
        name = name if name in CALLS or name in ("open", "close", "fork") else "unknown"
        self._calls.labels(name, status).inc()
        self._seconds.labels(name).observe(seconds)

    def text(self) -> bytes:
        """Returns all of it in Prometheus' text format."""
        found: bytes = self._write(self._registry)
        return found


def run(server: Server, sessions: Sessions, listening: socket.socket, drain_s: float) -> None:
    """Serves until Ctrl-C or SIGTERM, and ends the process.

    From then on no session is opened, and the others may end. A second signal ends all at once.

    Args:
        server: The application.
        sessions: Its sessions.
        listening: Where clients connect.
        drain_s: Seconds that open sessions have.

    Raises:
        MissingDependencyError: The extra is not installed.
    """
    uvicorn = import_extra("uvicorn", _EXTRA)
    config = uvicorn.Config(
        server.app,
        log_level="error",  # its warnings are of what others send
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=2,
        ws_max_size=server.max_body_bytes,
    )

    class Draining(uvicorn.Server):  # type: ignore[misc, name-defined]  # found at run time
        """Waits for sessions before it ends."""

        def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ARG002 - as uvicorn calls it
            if sessions.is_draining:
                os._exit(0)  # no sandbox outlives this process
            sessions.is_draining = True
            asyncio.get_running_loop().call_soon_threadsafe(self._begin_to_end)

        def _begin_to_end(self) -> None:
            self._ending = asyncio.create_task(self._drain())

        async def _drain(self) -> None:
            if len(sessions):
                _log.warning(
                    "ending: %d open sessions have %g s; a second signal ends at once",
                    len(sessions),
                    drain_s,
                )
            until = time.monotonic() + drain_s
            while len(sessions) and time.monotonic() < until:
                await asyncio.sleep(0.1)
            self.should_exit = True

    Draining(config).run(sockets=[listening])
    os._exit(0)  # calls that are under way would keep it for as long as they take
