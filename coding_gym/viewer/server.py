"""The viewer's pages over HTTP.

A trajectory is text that a model wrote, and other pages in the same browser may be hostile: `Guard`
refuses requests that another site could have caused, asks for a token where other machines reach
the server, and sends headers that let a page run nothing but the viewer's own scripts.
"""

import asyncio
import hmac
import ipaddress
import logging
import re
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib import resources
from typing import Any

from coding_gym.errors import CodingGymError, UnknownNameError
from coding_gym.evaluation.statistics import mean_estimate
from coding_gym.optional import import_optional
from coding_gym.viewer.pages import Json, Run, Runs, compare, dumps

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
_PAGES = ("summary", "episodes", "episode", "turns", "text", "gold")
_KEEP_ALIVE_S = 15
_PAUSE_S = 0.01  # between steps of the indexes

_log = logging.getLogger(__name__)


class Watcher:
    """Fills the indexes of all runs on a thread, loads their tasks on another.

    Attributes:
        published: The last summary of each run as JSON, behind the time of its change.
    """

    def __init__(self, runs: Runs) -> None:
        self.published: dict[str, tuple[int, str]] = {}
        self._runs = runs
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Starts the threads."""
        self._thread.start()
        threading.Thread(target=self._load, daemon=True).start()

    def stop(self) -> None:
        """Ends the work on the indexes; tasks that are being loaded are not waited for."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        pause = refreshed = 0.0
        while not self._stop.wait(pause):
            if time.monotonic() - refreshed > 1:
                self._try(self._refresh)
                refreshed = time.monotonic()
            runs = [*self._runs.by_id.values()]
            busy = [self._try(partial(self._step, run)) for run in runs]
            pause = _PAUSE_S if any(busy) else 1

    def _try(self, step: Callable[[], bool]) -> bool:
        """Does a step; one run that is broken must not stop the others."""
        try:
            return step()
        except Exception:  # noqa: BLE001 - a stranger's files may break it in any way
            _log.debug("a step failed", exc_info=True)  # the run's pages say why
            return False

    def _refresh(self) -> bool:
        self._runs.refresh()
        for run_id in self.published.keys() - self._runs.by_id.keys():
            del self.published[run_id]
        return False

    def _step(self, run: Run) -> bool:
        """Continues a run's index by a small step; returns whether there may be more to do."""
        is_busy = run.index.update() or run.index.enrich()
        if is_busy or run.is_live:
            text = dumps(run.summary())
            if self.published.get(run.id, (0, ""))[1] != text:
                self.published[run.id] = (time.monotonic_ns(), text)
        return is_busy

    def _load(self) -> None:
        while not self._stop.wait(0.2):
            for run in [*self._runs.by_id.values()]:
                if run.tasks is None and run.index.is_listed and not self._stop.is_set():
                    run.load_tasks()


class Guard:
    """Refuses requests that the owner did not make; adds headers to every response.

    Args:
        host: The address that the server listens on.
        port: Its port, for the name of the cookie: all ports of a host share cookies.
        token: What a request must carry; "" for none.
    """

    def __init__(self, host: str, port: int, token: str) -> None:
        self._is_local = is_loopback(host)
        self._names = {"localhost", host.lower()}
        if not self._is_local:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self._token = token
        self._cookie = f"coding_gym_view_{port}"

    async def __call__(self, request: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Answers a request, as a middleware of FastAPI."""
        try:
            response = self._refusal(request) or await call_next(request)
        except Exception as problem:  # noqa: BLE001 - a stranger's files may break a page in any way
            is_wrong = isinstance(problem, CodingGymError | ValueError)
            status = 404 if isinstance(problem, UnknownNameError) else 400 if is_wrong else 500
            response = _answer({"detail": str(problem) or type(problem).__name__}, status)
        response.headers.update(_HEADERS)
        if "token" in request.query_params and response.status_code == 200:
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
        return response

    def _refusal(self, request: Any) -> Any:
        """Returns the answer to a request that is refused; None for others."""
        headers, is_start = request.headers, request.scope["path"] == "/"
        host, origin = headers.get("host", ""), headers.get("origin")
        is_foreign = origin is not None and origin.partition("://")[2].lower() != host.lower()
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):  # another port: same-site
            is_foreign |= not is_start or headers.get("sec-fetch-mode") != "navigate"
        if is_foreign or not self._is_served(host):
            return _answer({"detail": "requests of other sites or hosts are refused"}, 403)
        kind, _, value = headers.get("authorization", "").partition(" ")
        given = [request.cookies.get(self._cookie, ""), value if kind.lower() == "bearer" else ""]
        if is_start:
            given.append(request.query_params.get("token", ""))
        is_known = [hmac.compare_digest(each.encode(), self._token.encode()) for each in given]
        if self._token and not any(is_known):
            return _answer({"detail": "open the link with the token that was printed"}, 401)
        return None

    def _is_served(self, host: str) -> bool:
        """Returns whether a Host header names this server.

        A hostile site can make its own name lead here, but not an address: where the server listens
        for other machines, every address is accepted.
        """
        found = re.fullmatch(r"\[?([\w.:-]*?)\]?(:\d+)?", host.lower(), re.ASCII)
        name = found[1] if found else ""
        return name in self._names or (is_loopback(name) if self._is_local else _is_address(name))


def is_loopback(host: str) -> bool:
    """Returns whether an address or name reaches this machine only."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def make_app(runs: Runs, *, host: str = "127.0.0.1", port: int = 7575, token: str = "") -> Any:
    """Returns the viewer as an ASGI application.

    Args:
        runs: The runs to display.
        host: The address that it is served on.
        port: The port.
        token: What requests must carry; "" for none.

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

    def page(request: Any) -> Any:
        name, run = request.path_params.get("page", "summary"), request.path_params["run"]
        if name not in _PAGES:
            raise UnknownNameError(f"there is no page {name!r:.100}")
        return _answer(getattr(runs[run], name)(**request.query_params))

    def comparison(request: Any) -> Any:
        a, b = (runs[request.query_params.get(name, "")] for name in ("a", "b"))
        return _answer(compare(a, b))

    def events(_: Any) -> Any:
        stream = _events(watcher, lambda: getattr(app.state.server, "should_exit", False))
        return fastapi.responses.StreamingResponse(stream, media_type="text/event-stream")

    app = fastapi.FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.server = None
    app.add_route("/", _asset)
    app.add_route("/assets/{name}", _asset)
    app.add_route("/api/runs", lambda _: _answer(runs.page()))
    app.add_route("/api/runs/{run}", page)
    app.add_route("/api/runs/{run}/{page}", page)
    app.add_route("/api/compare", comparison)
    app.add_route("/api/events", events)
    app.middleware("http")(Guard(host, port, token))
    return app


def _answer(content: Json, status: int = 200) -> Any:
    fastapi = import_optional("fastapi", "'coding-gym[serve]'")
    return fastapi.Response(dumps(content), status, media_type="application/json")


def _asset(request: Any) -> Any:
    """Answers with a file of the pages."""
    name = request.path_params.get("name", "index.html")
    files = {file.name: file for file in (resources.files(__package__) / "assets").iterdir()}
    kind = _TYPES.get(name.rpartition(".")[2])
    if name not in files or kind is None:
        raise UnknownNameError(f"there is no {name!r:.100}")
    fastapi = import_optional("fastapi", "'coding-gym[serve]'")
    return fastapi.Response(files[name].read_bytes(), media_type=kind)


async def _events(watcher: Watcher, is_ending: Callable[[], bool]) -> AsyncIterator[str]:
    """Yields server-sent events: every run's summary, and again when it has changed."""
    seen, sent_at = 0, 0.0
    while not is_ending():
        new = sorted(entry for entry in [*watcher.published.values()] if entry[0] > seen)
        for number, text in new:
            seen = number
            yield f"event: run\ndata: {text}\n\n"
        if new or time.monotonic() - sent_at > _KEEP_ALIVE_S:
            yield ": still here\n\n"
            sent_at = time.monotonic()
        await asyncio.sleep(0.5)


def serve(runs: Runs, *, host: str, port: int, token: str, on_start: Callable[[], None]) -> None:
    """Serves the viewer until Ctrl-C.

    Args:
        runs: The runs to display.
        host: The address to listen on.
        port: The port.
        token: What requests must carry; "" for none.
        on_start: Is called once the server listens.

    Raises:
        MissingDependencyError: FastAPI or uvicorn is not installed.
        OSError: The port is taken.
    """
    uvicorn = import_optional("uvicorn", "'coding-gym[serve]'")
    # Requests take the interpreter's lock from the threads of `Watcher` after that time.
    sys.setswitchinterval(0.0005)
    mean_estimate([0.0, 1.0])  # imports scipy before there is anyone to wait
    app = make_app(runs, host=host, port=port, token=token)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        on_start()
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
        app.state.server = uvicorn.Server(config)
        app.state.server.run(sockets=[listening])
