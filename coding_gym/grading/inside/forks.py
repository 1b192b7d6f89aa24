"""Runs of tests in forks of one process that has imported everything except the project."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .forking import forked
from .plugin import Plugin, run_pytest
from .time_limit import limited

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FIRST_TIME = 1_000_000_000  # an mtime older than any file of a template: no byte code matches


def run(reporter: Any, settings: dict[str, Any]) -> int:
    """Runs the tests of several requests, and reports each run.

    Args:
        reporter: Receives one record ``run`` per request: the records of the run (None if its
            process died or took too long) and the processor seconds that it used.
        settings: ``options``: see `Plugin`; ``modules``: modules to import first; ``requests``:
            the fields of `coding_gym.grading.supervision.ForkedRun`, with the content of ``files``
            as Latin-1.
    """
    _preload(settings["modules"])
    for number, request in enumerate(settings["requests"]):
        plugin_settings = {**request, "options": settings["options"]}
        with _written(request["files"], number):
            reporter.send("run", *forked(partial(_run, plugin_settings), request["cpu_s"]))
    return 0


def _run(settings: dict[str, Any]) -> list[Any]:
    """Runs tests in this process, which is a fork; returns the records."""
    records: list[Any] = []
    reporter = SimpleNamespace(send=lambda *record: records.append(record))
    sys.dont_write_bytecode = not settings["compiles"]
    random.seed(settings["seed"])
    plugin = Plugin(reporter, settings)
    limit_s = settings["limit_s"]
    limit = partial(limited, limit_s) if limit_s else contextlib.nullcontext
    observer_module = importlib.import_module(".observer", __package__)  # from the caller
    observer = observer_module.Observer(_root(), plugin.name, limit, trace=settings["trace"])
    status = run_pytest([*settings["paths"], "-p", "no:cacheprovider"], [plugin, observer])
    reporter.send("observed", observer.result())
    reporter.send("end", status)
    return records


def _root() -> str:
    """Returns the project's folder, with a slash at its end."""
    return f"{os.path.realpath(Path.cwd())}/"


@contextlib.contextmanager
def _written(files: dict[str, str], number: int) -> Iterator[None]:
    """Replaces the content of files; restores their content and times at the end.

    The times are unique, so that Python ignores byte code of the original program.
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
    """Imports modules that tests need, once for all forks.

    A module that imports the project is removed again: only forks import the changed project.
    """
    root = _root()
    for name in names:
        if name in sys.modules:
            continue
        before = set(sys.modules)
        try:
            importlib.import_module(name)
        except BaseException:  # noqa: BLE001, S112 - some modules cannot be imported by name alone
            continue
        new = set(sys.modules) - before
        if any(str(getattr(sys.modules[n], "__file__", "")).startswith(root) for n in new):
            for imported in new:
                del sys.modules[imported]
