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
from contextlib import suppress
from importlib import resources
from typing import Any

from pydantic import ValidationError

from coding_gym.errors import CodingGymError, UnknownNameError
from coding_gym.evaluation.statistics import mean_estimate
from coding_gym.optional import import_extra
from coding_gym.viewer.pages import Json, Runs, compare, dumps

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_PAGES = ("summary", "episodes", "episode", "turns", "text", "gold")
_KEEP_ALIVE_S = 15
_PAUSE_S = 0.01  # between steps of the indexes

_log = logging.getLogger(__name__)


def _refresh(runs: Runs) -> None:
    """Finds runs, fills their indexes and sums them up, again and again."""
    while True:
        with suppress(OSError):  # a run that is being made or removed
            runs.refresh()
        is_busy = False
        for run in runs.by_id.values():
            try:
                is_busy |= run.refresh()
            except Exception:  # noqa: BLE001 - a broken run must not stop the others
                _log.debug("the index of %s cannot be filled", run.folder, exc_info=True)
        time.sleep(_PAUSE_S if is_busy else 1)


def _load_tasks(runs: Runs) -> None:
    """Loads the tasks of runs whose episodes are listed, again and again."""
    while True:
        time.sleep(0.2)
        for run in runs.by_id.values():
            if run.tasks is None and any(run.index.listed):
                run.load_tasks()


class Guard:
    """A middleware that refuses requests of other sites and adds headers to every response.

    Args:
        host: The address that the server listens on.
        port: Its port, for the name of the cookie: all ports of a host share cookies.
        token: The token that every request needs; "" for none.
    """

    def __init__(self, host: str, port: int, token: str) -> None:
        # A hostile site can make its own name lead here, but not an address: where the server
        # listens for other machines, every address is accepted.
        self._is_own_address = is_loopback if is_loopback(host) else _is_address
        self._names = {"localhost", host.lower()}
        if not is_loopback(host):
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self._token = token
        self._cookie = f"coding_gym_view_{port}"

    async def __call__(self, request: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Answers a request."""
        try:
            if self._is_foreign(request):
                response = _answer({"detail": "requests of other sites or hosts are refused"}, 403)
            elif not self._is_permitted(request):
                response = _answer({"detail": "open the link with the token that was printed"}, 401)
            else:
                response = await call_next(request)
        except Exception as problem:  # noqa: BLE001 - a hostile run may break a page in any way
            is_wrong = isinstance(problem, CodingGymError | ValueError | TypeError)
            status = 404 if isinstance(problem, UnknownNameError) else 400 if is_wrong else 500
            said = str(problem) or type(problem).__name__
            if isinstance(problem, ValidationError):
                said = "{loc[0]}: {msg}".format(**problem.errors()[0])
            response = _answer({"detail": said}, status)
        response.headers.update(_HEADERS)
        if "token" in request.query_params and response.status_code == 200:
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
        return response

    def _is_foreign(self, request: Any) -> bool:
        """Returns whether another site or a name of another host caused a request."""
        headers = request.headers
        host = headers.get("host", "").lower()
        name = re.sub(r":[0-9]+$", "", host).removeprefix("[").removesuffix("]")
        origin = headers.get("origin", f"//{host}").lower().partition("//")[2]
        is_link = request.scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        is_own_site = headers.get("sec-fetch-site", "none") in ("same-origin", "none")
        is_served = name in self._names or self._is_own_address(name)
        return not is_served or origin != host or not (is_own_site or is_link)

    def _is_permitted(self, request: Any) -> bool:
        """Returns whether a request has the token, if one is needed."""
        sent = [request.cookies.get(self._cookie, "")]
        if request.scope["path"] == "/":
            sent.append(request.query_params.get("token", ""))
        return not self._token or any(
            hmac.compare_digest(each.encode(), self._token.encode()) for each in sent
        )


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
    """Returns the viewer as an ASGI application; see `serve` for the arguments.

    Raises:
        MissingDependencyError: FastAPI is not installed.
    """
    fastapi = import_extra("fastapi", "serve")
    staticfiles = import_extra("fastapi.staticfiles", "serve")
    assets = resources.files(__package__) / "assets"

    def page(request: Any) -> Any:
        name, run = request.path_params.get("page", "summary"), request.path_params["run"]
        if name not in _PAGES:
            raise UnknownNameError(f"there is no page {name!r:.100}")
        return _answer(getattr(runs[run], name)(**request.query_params))

    def comparison(request: Any) -> Any:
        a, b = (runs[request.query_params.get(name, "")] for name in ("a", "b"))
        return _answer(compare(a, b))

    def events(_: Any) -> Any:
        stream = _events(runs, lambda: getattr(app.state.server, "should_exit", False))
        return fastapi.responses.StreamingResponse(stream, media_type="text/event-stream")

    app = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.server = None
    app.add_route("/", lambda _: fastapi.responses.FileResponse(assets / "index.html"))
    app.mount("/assets", staticfiles.StaticFiles(directory=str(assets)))
    app.add_route("/api/runs", lambda _: _answer(runs.page()))
    app.add_route("/api/runs/{run}", page)
    app.add_route("/api/runs/{run}/{page}", page)
    app.add_route("/api/compare", comparison)
    app.add_route("/api/events", events)
    app.middleware("http")(Guard(host, port, token))
    return app


def _answer(content: Json, status: int = 200) -> Any:
    fastapi = import_extra("fastapi", "serve")
    return fastapi.Response(dumps(content), status, media_type="application/json")


async def _events(runs: Runs, is_ending: Callable[[], bool]) -> AsyncIterator[str]:
    """Yields server-sent events: the summaries of all runs, again when they change."""
    sent: dict[str, Json] = {}
    sent_at = 0.0
    while not is_ending():
        latest = {run.id: run.latest for run in runs.by_id.values() if run.latest} | runs.gone
        for run_id, summary in latest.items():
            if sent.get(run_id) != summary:
                yield f"event: run\ndata: {dumps(summary)}\n\n"
        sent |= latest
        if time.monotonic() - sent_at > _KEEP_ALIVE_S:
            yield ": still here\n\n"
            sent_at = time.monotonic()
        await asyncio.sleep(0.5)


def serve(runs: Runs, *, host: str, port: int, token: str, on_start: Callable[[], None]) -> None:
    """Serves the viewer until Ctrl-C, with the `token` that every request needs; "" for none.

    ``on_start`` is called once the server listens.

    Raises:
        MissingDependencyError: FastAPI or uvicorn is not installed.
        OSError: The port is taken.
    """
    uvicorn = import_extra("uvicorn", "serve")
    # Requests take the interpreter's lock from the threads of the indexes after that time.
    sys.setswitchinterval(0.0005)
    mean_estimate([0.0, 1.0])  # imports scipy before the first request
    app = make_app(runs, host=host, port=port, token=token)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        for work in (_refresh, _load_tasks):
            threading.Thread(target=work, args=(runs,), daemon=True).start()
        on_start()
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
        app.state.server = uvicorn.Server(config)
        app.state.server.run(sockets=[listening])
