"""Runs of tests in forks of one process that has all but the project imported already."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import sys
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .forking import IDLE_S, forked
from .plugin import Plugin, run_pytest
from .time_limit import limited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Request = dict[str, Any]
    Run = Callable[[Request], list[Any]]

# Where each test has a limit of its own, a run of tests that all wait for ever may last so long.
_MAX_IDLE_S = 60.0
_FIRST_TIME = 1_000_000_000  # seconds; no file of a template is as old, so no byte code fits


class _SharedStart:
    """A pytest plugin that runs tests of several requests in forks once pytest has started.

    Args:
        requests: What to run, with the number of each.
        settings: The settings of all.

    Attributes:
        results: The results; None where tests could not be run so.
    """

    def __init__(self, requests: list[tuple[int, Request]], settings: dict[str, Any]) -> None:
        self.results: list[Any] | None = None
        self.plugin = Plugin(None, settings)
        self._requests = requests
        self._session: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> bool | None:
        """Runs the requests; forks come here again, and go on to collect."""
        if self._session is not None:
            return None
        self._session = session
        # Where a file that requests change is imported by now, forks would run what it was before.
        changed = {os.path.realpath(name) for _, one in self._requests for name in one["files"]}
        files = {str(getattr(module, "__file__", None)) for module in [*sys.modules.values()]}
        # pytest-randomly draws a seed as it starts; all forks would have the same.
        is_seeded = session.config.pluginmanager.hasplugin("randomly")
        if not is_seeded and changed.isdisjoint(map(os.path.realpath, files)):
            self.results = _results(self._requests, self._run)
        return True

    def _run(self, request: Request) -> list[Any]:
        def run(observer: Any) -> int:
            hooks = self._session.config.hook
            self._session.config.pluginmanager.register(observer)
            with contextlib.suppress(BaseException):  # as pytest does: what was reported counts
                hooks.pytest_collection(session=self._session)
                hooks.pytest_runtestloop(session=self._session)
            return 0

        return _records(self.plugin, request, run)


def run(reporter: Any, settings: dict[str, Any]) -> int:
    """Runs tests of several requests and reports each run.

    Args:
        reporter: Takes a record ``run`` of each request: the records of the run, None if its
            process died or took too long; and the processor seconds that it used. A record
            ``shared`` says whether all runs but those of single requests shared a start of pytest.
        settings: ``options``: see `Plugin`; ``modules``: modules to import first; ``shares``:
            whether pytest may start once for requests with the same paths; ``requests``: each with
            ``files`` (content by path, as Latin-1), ``paths`` (pytest's arguments), ``tests``,
            ``reverse``, ``seed`` (of chance), ``cpu_s``, ``limit_s`` (of one test), ``trace``, and
            ``compiles`` (whether byte code is written).
    """
    _preload(settings["modules"])
    all_shared = True
    for _, group in groupby(enumerate(settings["requests"]), lambda numbered: numbered[1]["paths"]):
        requests = list(group)
        results = None
        if settings["shares"]:
            results = _in_one_start(requests, settings)
            all_shared = all_shared and results is not None
        for result in results or _results(requests, partial(_run_alone, settings)):
            reporter.send("run", *result)
    reporter.send("shared", all_shared)
    return 0


def _in_one_start(requests: list[tuple[int, Request]], settings: dict[str, Any]) -> Any:
    """Starts pytest in a fork and runs requests there; returns None where that is not possible."""

    def run() -> list[Any]:
        shared = _SharedStart(requests, settings)
        with contextlib.suppress(BaseException):  # raised by a plugin as the session ends
            run_pytest(_arguments(requests[0][1]), [shared.plugin, shared])
        return [shared.results]

    done, _ = forked(run)
    if done is None:
        raise RuntimeError("the tests ended the process that starts them")
    return done[0]


def _run_alone(settings: dict[str, Any], request: Request) -> list[Any]:
    plugin = Plugin(None, settings)

    def run(observer: Any) -> int:
        return run_pytest(_arguments(request), [plugin, observer])

    return _records(plugin, request, run)


def _arguments(request: Request) -> list[str]:
    return [*request["paths"], "-p", "no:cacheprovider"]


def _records(plugin: Plugin, request: Request, run: Callable[[Any], int]) -> list[Any]:
    """Runs tests in this process, which is a fork; returns what is reported."""
    records = _Records()
    sys.dont_write_bytecode = not request["compiles"]
    random.seed(request["seed"])
    plugin.choose(records, request)
    limit_s = request["limit_s"]
    limit = partial(limited, limit_s) if limit_s else contextlib.nullcontext
    observer_module = importlib.import_module(".observer", __package__)  # the caller's
    observer = observer_module.Observer(_root(), plugin.name, limit, trace=request["trace"])
    status = run(observer)
    records.send("observed", observer.result())
    records.send("end", status)
    return records.all


class _Records:
    """Keeps the records of a run."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def send(self, *record: object) -> None:
        """Keeps one record."""
        self.all.append(record)


def _results(requests: list[tuple[int, Request]], run: Run) -> list[Any]:
    results = []
    for number, request in requests:
        idle_s = IDLE_S if request["limit_s"] is None else _MAX_IDLE_S
        with _written(request["files"], number):
            results.append(forked(partial(run, request), request["cpu_s"], idle_s))
    return results


def _root() -> str:
    """Returns the project's folder, with a slash at its end."""
    return f"{os.path.realpath(Path.cwd())}/"


@contextlib.contextmanager
def _written(files: dict[str, str], number: int) -> Iterator[None]:
    """Replaces the content of files; they and their times come back at the end.

    The times are like no others, so that byte code of the program as it was is not used.
    """
    kept: dict[Path, tuple[bytes, tuple[int, int]]] = {}
    try:
        for name, content in files.items():
            path = Path(name)
            status = path.stat()
            kept[path] = (path.read_bytes(), (status.st_atime_ns, status.st_mtime_ns))
            path.write_bytes(content.encode("latin-1"))
            os.utime(path, (_FIRST_TIME + number, _FIRST_TIME + number))
        yield
    finally:
        for path, (data, times) in kept.items():
            path.write_bytes(data)
            os.utime(path, ns=times)


def _preload(names: Iterable[str]) -> None:
    """Imports what tests need beside the project, so that forks have it already.

    A module that would bring the project in, which is not broken yet, is forgotten again.
    """
    root = _root()
    for name in names:
        if name in sys.modules:
            continue
        before = set(sys.modules)
        try:
            importlib.import_module(name)
        except BaseException:  # noqa: BLE001, S112 - what a test imports one way may refuse another
            continue
        new = set(sys.modules) - before
        if any(str(getattr(sys.modules[n], "__file__", "")).startswith(root) for n in new):
            for one in new:
                del sys.modules[one]
