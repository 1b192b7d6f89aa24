"""The viewer's pages over HTTP.

A trajectory is text that a model wrote, and other pages of the same browser may be hostile:
`Guard` refuses requests that another site could have caused, asks for a token where the server can
be reached from other machines, and adds headers that let a page run nothing but the viewer's own
scripts. All routes only read.
"""

import asyncio
import hmac
import ipaddress
import json
import logging
import math
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from http.cookies import CookieError, SimpleCookie
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

from coding_gym.errors import CodingGymError, UnknownNameError
from coding_gym.optional import import_optional
from coding_gym.viewer.pages import MAX_EPISODES, MAX_TURNS, Json, Run, Runs, between, compare

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_KEEP_ALIVE_S = 15

_log = logging.getLogger(__name__)


class Watcher:
    """The thread that fills the indexes and notices changes, for all clients.

    Attributes:
        published: The last summary of each run as JSON text, and the number of that change.
    """

    def __init__(self, runs: Runs) -> None:
        self.published: dict[str, tuple[int, str]] = {}
        self._runs = runs
        self._number = 0
        self._live: set[str] = set()  # runs whose numbers may change by themselves
        self._problems: dict[str, str] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._watch, self._load)
        ]

    def start(self) -> None:
        """Starts watching."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends watching; a source of tasks that is being loaded is not waited for."""
        self._stop.set()
        self._threads[0].join()

    def _watch(self) -> None:
        refreshed = 0.0
        while not self._stop.is_set():
            if time.monotonic() - refreshed > 1:
                self._runs.refresh()
                refreshed = time.monotonic()
            is_busy = [self._step(run) for run in [*self._runs.by_id.values()]]
            self._stop.wait(0.01 if any(is_busy) else 1)

    def _step(self, run: Run) -> bool:
        """Continues a run's index by a small step; returns whether there is more to do."""
        try:
            is_busy = run.index.update() or (self._is_live(run) and run.index.enrich())
            if is_busy or self._is_live(run):
                self._publish(run)
        except Exception as problem:  # noqa: BLE001 - one broken run must not stop the others
            if self._problems.get(run.id) != str(problem):
                _log.warning("the index of %s cannot be filled: %s", run.folder, problem)
            self._problems[run.id] = str(problem)
            return False
        return is_busy

    def _is_live(self, run: Run) -> bool:
        return run.id in self._live or run.id not in self.published

    def _publish(self, run: Run) -> None:
        summary = run.summary()
        text = dumps(summary)
        if self.published.get(run.id, (0, ""))[1] != text:
            self._number += 1
            self.published[run.id] = (self._number, text)
        is_live = summary["running"] or summary["indexed"] < 1
        (self._live.add if is_live else self._live.discard)(run.id)

    def _load(self) -> None:
        """Loads the tasks of each run."""
        while not self._stop.wait(0.2):
            for run in [*self._runs.by_id.values()]:
                if run.tasks is None and not self._stop.is_set():
                    run.load_tasks()
                    self._live.add(run.id)


class Guard:
    """Refuses requests that the owner did not make, and adds headers to every response.

    Args:
        app: The application behind it, an ASGI callable.
        host: The address that the server listens on.
        port: Its port, which names the cookie: cookies of one host are shared by all ports.
        token: What a request must know; "" for none.
    """

    def __init__(self, app: Any, host: str, port: int, token: str = "") -> None:
        self._app = app
        self._is_local = is_loopback(host)
        self._names = {"localhost", host.lower()}
        if not self._is_local:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self._token = token
        self._cookie = f"coding_gym_view_{port}"

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        extra = dict(_HEADERS)
        refusal = self._refusal(scope, headers)
        if not refusal and self._token:
            if self._has_query_token(scope):
                extra["Set-Cookie"] = (
                    f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
                )
            elif not self._has_token(headers):
                refusal = 401, "open the link with the token that the server printed"

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                pairs = [(name.lower().encode(), value.encode()) for name, value in extra.items()]
                message["headers"] = [*message.get("headers", ()), *pairs]
            await send(message)

        if refusal:
            await _refuse(guarded, *refusal)
        else:
            await self._app(scope, receive, guarded)

    def _refusal(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> Any:
        """Returns status and reason if a request is not from this server's own pages."""
        host = headers.get("host", "")
        if not self._is_served(host):
            return 403, "this Host is not served here"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return 403, "requests of other sites are refused"
        is_opened = scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_opened:
            return 403, "requests of other sites are refused"
        return None

    def _is_served(self, host: str) -> bool:
        """Returns whether a Host header names this server.

        A hostile site can make its own name lead here, but not an address: where the server listens
        on other than loopback addresses, all addresses are accepted.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self._names:
            return True
        return is_loopback(name) if self._is_local else _is_address(name)

    def _has_query_token(self, scope: MutableMapping[str, Any]) -> bool:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return scope["path"] == "/" and self._is_token(given)

    def _has_token(self, headers: dict[str, str]) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_token(given):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return cookie is not None and self._is_token(cookie.value)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


async def _refuse(send: Any, status: int, reason: str) -> None:
    body = json.dumps({"detail": reason}).encode()
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def is_loopback(host: str) -> bool:
    """Returns whether an address or name reaches this machine only."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def dumps(value: Json) -> str:
    """Writes JSON of ASCII characters; numbers that JSON does not have become null."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def make_app(runs: Runs, *, host: str = "127.0.0.1", port: int = 7575, token: str = "") -> Any:
    """Returns the viewer as an ASGI application.

    Args:
        runs: The runs to display.
        host: The address that it is served on.
        port: The port.
        token: What requests must know; "" for none.

    Raises:
        MissingDependencyError: FastAPI is not installed.
    """
    fastapi = import_optional("fastapi", "'coding-gym[serve]'")
    watcher = Watcher(runs)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        watcher.start()
        yield
        watcher.stop()
        runs.close()

    app = fastapi.FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    _add_routes(app, runs, fastapi)
    _add_events(app, watcher, fastapi)
    app.add_middleware(Guard, host=host, port=port, token=token)
    return app


def _add_routes(app: Any, runs: Runs, fastapi: Any) -> None:
    routes = _Routes(runs, fastapi.Response)
    for path, answer in routes.by_path().items():
        app.get(path, response_model=None)(answer)

    def refused(_: Any, problem: CodingGymError) -> Any:
        status = 404 if isinstance(problem, UnknownNameError) else 400
        return routes.answer({"detail": str(problem)}, status)

    def invalid(_: Any, problem: Any) -> Any:
        said = [f"{error['loc'][-1]}: {error['msg']}" for error in problem.errors()]
        return routes.answer({"detail": "; ".join(said)}, 400)

    app.exception_handler(CodingGymError)(refused)
    app.exception_handler(fastapi.exceptions.RequestValidationError)(invalid)


class _Routes:
    """The answers that are not streams; their arguments are the parameters of the addresses."""

    def __init__(self, runs: Runs, response: Any) -> None:
        self._runs = runs
        self._response = response

    def by_path(self) -> dict[str, Callable[..., Any]]:
        return {
            "/": self.index,
            "/assets/{name}": self.asset,
            "/api/runs": lambda: self.answer(self._runs.page()),
            "/api/runs/{run}": self.run,
            "/api/runs/{run}/episodes": self.episodes,
            "/api/runs/{run}/episode": self.episode,
            "/api/runs/{run}/turns": self.turns,
            "/api/runs/{run}/text": self.text,
            "/api/runs/{run}/gold": self.gold,
            "/api/compare": self.compare,
        }

    def answer(self, content: Json, status: int = 200) -> Any:
        return self._response(dumps(content), status, media_type="application/json")

    def index(self) -> Any:
        return self.asset("index.html")

    def asset(self, name: str) -> Any:
        folder = resources.files("coding_gym.viewer") / "assets"
        found = {file.name: file for file in folder.iterdir()}
        kind = _TYPES.get(name.rpartition(".")[2])
        if name not in found or kind is None:
            raise UnknownNameError(f"there is no {name!r:.100}")
        return self._response(found[name].read_bytes(), media_type=kind)

    def run(self, run: str) -> Any:
        return self.answer(self._runs[run].summary())

    def episodes(
        self,
        run: str,
        task: str = "",
        repo: str = "",
        difficulty: str = "",
        outcome: str = "",
        stop_reason: str = "",
        error_class: str = "",
        text: str = "",
        sort: str = "",
        order: str = "asc",
        offset: int = 0,
        limit: int = 100,
    ) -> Any:
        wanted = {"repo": repo, "difficulty": difficulty, "outcome": outcome}
        wanted |= {"stop_reason": stop_reason, "error_class": error_class}
        wanted |= {"task": task, "text": text, "sort": sort, "order": order}
        limit = between("limit", limit, 1, MAX_EPISODES)
        return self.answer(self._runs[run].episodes(offset=offset, limit=limit, **wanted))

    def episode(self, run: str, task: str, attempt: int = 0) -> Any:
        return self.answer(self._runs[run].episode(task, attempt))

    def turns(
        self, run: str, task: str, attempt: int = 0, start: int = 0, count: int = MAX_TURNS
    ) -> Any:
        return self.answer(self._runs[run].turns(task, attempt, start, count))

    def text(self, run: str, task: str, path: str, attempt: int = 0, offset: int = 0) -> Any:
        return self.answer(self._runs[run].text(task, attempt, path, offset))

    def gold(self, run: str, task: str) -> Any:
        return self.answer(self._runs[run].gold(task))

    def compare(self, a: str, b: str) -> Any:
        return self.answer(compare(self._runs[a], self._runs[b]))


def _add_events(app: Any, watcher: Watcher, fastapi: Any) -> None:
    async def events(request: Any) -> AsyncIterator[str]:
        seen, silent_since = 0, time.monotonic()
        while not await request.is_disconnected():
            new = [entry for entry in [*watcher.published.values()] if entry[0] > seen]
            for seen, text in sorted(new):  # noqa: B007 - the last one seen is kept
                yield f"event: run\ndata: {text}\n\n"
            if new or time.monotonic() - silent_since > _KEEP_ALIVE_S:
                yield ": still here\n\n"
                silent_since = time.monotonic()
            await asyncio.sleep(0.5)

    def stream(request: Any) -> Any:
        streamed = fastapi.responses.StreamingResponse
        return streamed(events(request), media_type="text/event-stream")

    app.add_route("/api/events", stream)


def serve(runs: Runs, *, host: str, port: int, token: str, on_start: Callable[[], None]) -> None:
    """Serves the viewer until Ctrl-C.

    Args:
        runs: The runs to display.
        host: The address to listen on.
        port: The port.
        token: What requests must know; "" for none.
        on_start: Is called once the server listens.

    Raises:
        MissingDependencyError: FastAPI or uvicorn is not installed.
        OSError: The port is taken.
    """
    uvicorn = import_optional("uvicorn", "'coding-gym[serve]'")
    app = make_app(runs, host=host, port=port, token=token)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        on_start()
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listening])
