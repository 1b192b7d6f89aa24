"""An HTTP application with the viewer's pages.

A trajectory is untrusted text of a model, and other pages in the browser can be malicious. The
application accepts only requests to a loopback name, which prevents DNS rebinding; `coding-gym
view` listens on a loopback address. A Content-Security-Policy allows only the viewer's scripts.
"""

import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib import resources
from typing import Any

from pydantic import ValidationError

from coding_gym.errors import CodingGymError, UnknownNameError
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
_PAGES = ("episodes", "search", "episode", "text")


def _refresh(runs: Runs) -> None:
    """Updates the runs until the process ends."""
    while True:
        with suppress(OSError):  # another process creates or removes a run
            runs.refresh()
        is_busy = False
        for run in runs.by_id.values():
            with suppress(Exception):  # an unreadable run must not stop the other runs
                is_busy |= run.refresh()
        time.sleep(0.01 if is_busy else 1)


def make_app(runs: Runs) -> Any:
    """Returns an ASGI application that serves the viewer, and updates the runs while it is served.

    Raises:
        MissingDependencyError: FastAPI is not installed.
    """
    fastapi = import_extra("fastapi", "serve")
    staticfiles = import_extra("fastapi.staticfiles", "serve")
    trustedhost = import_extra("fastapi.middleware.trustedhost", "serve")
    assets = resources.files(__package__) / "assets"

    def page(request: Any) -> Any:
        name = request.path_params["page"]
        if name not in _PAGES:
            raise UnknownNameError(f"page must be one of {', '.join(_PAGES)}, got {name!r:.100}")
        return _reply(getattr(runs.find(request.path_params["run"]), name)(**request.query_params))

    def comparison(request: Any) -> Any:
        a, b = (runs.find(request.query_params.get(name, "")) for name in ("a", "b"))
        return _reply(compare(a, b))

    @asynccontextmanager
    async def update_runs(_: Any) -> AsyncIterator[None]:
        threading.Thread(target=_refresh, args=(runs,), daemon=True).start()
        yield

    app = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=update_runs)
    app.add_route("/", lambda _: fastapi.responses.FileResponse(assets / "index.html"))
    app.mount("/assets", staticfiles.StaticFiles(directory=str(assets)))
    app.add_route("/api/runs", lambda _: _reply(runs.page()))
    app.add_route("/api/runs/{run}/{page}", page)
    app.add_route("/api/compare", comparison)
    app.middleware("http")(_guard)
    hosts = ["localhost", "127.0.0.1", "[::1]"]
    app.add_middleware(trustedhost.TrustedHostMiddleware, allowed_hosts=hosts)
    return app


async def _guard(request: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """Adds security headers to a response, and converts an exception to an error response."""
    try:
        response = await call_next(request)
    except Exception as problem:  # noqa: BLE001 - a malicious run can cause any exception
        is_client_error = isinstance(problem, CodingGymError | ValueError | TypeError)
        status = 404 if isinstance(problem, UnknownNameError) else 400 if is_client_error else 500
        message = str(problem) or type(problem).__name__
        if isinstance(problem, ValidationError):
            message = "{loc[0]}: {msg}".format(**problem.errors()[0])
        response = _reply({"detail": message}, status)
    response.headers.update(_HEADERS)
    return response


def _reply(content: Json, status: int = 200) -> Any:
    fastapi = import_extra("fastapi", "serve")
    return fastapi.Response(dumps(content), status, media_type="application/json")
