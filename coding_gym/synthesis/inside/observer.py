"""Observes failures, executed lines, and tests that use randomness."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import random
import resource
import signal
import sys
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .failures import describe
from .line_tracer import LineTracer
from .time_limit import limited

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from contextlib import AbstractContextManager

_PROCESSES = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}
_MAX_DESCRIBED = 24


def run(reporter: Any, settings: dict[str, Any]) -> int:
    """Runs tests, reports an observation, and returns pytest's exit code.

    Args:
        reporter: Receives the records.
        settings: Those of ``Plugin`` in `coding_gym.grading.inside`; ``paths``: pytest's arguments;
            ``cpu_s``: processor seconds that the run may take; ``limit_s``: those of one test, or
            None; ``seed``: the seed of the random generator; ``trace``: whether executed lines are
            recorded.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(settings["cpu_s"]) + 1, hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, settings["cpu_s"])  # RLIMIT_CPU has whole seconds only
    random.seed(settings["seed"])
    grading = importlib.import_module(".plugin", __package__)  # it is sent with this module
    plugin = grading.Plugin(reporter, settings)
    limit_s = settings["limit_s"]
    limit = partial(limited, limit_s) if limit_s else contextlib.nullcontext
    root = f"{os.path.realpath(Path.cwd())}/"
    observer = Observer(root, plugin.name, limit, trace=settings["trace"])
    arguments = [*settings["paths"], "-p", "no:cacheprovider"]
    status: int = grading.run_pytest(arguments, [plugin, observer])
    reporter.send("observed", observer.result())
    return status


class Observer:
    """Observes one pytest session.

    Args:
        root: The project's folder, with a slash at its end.
        name: Returns the id of a test from pytest's node id.
        limited: Returns a context with the time limit of a test.
        trace: Whether executed lines are recorded.
    """

    def __init__(
        self,
        root: str,
        name: Callable[[str], str],
        limited: Callable[[], AbstractContextManager[None]],
        *,
        trace: bool,
    ) -> None:
        self._root, self._name, self._limited = root, name, limited
        self._functions: dict[str, tuple[str, int]] = {}
        self._failures: dict[str, dict[str, Any]] = {}
        self._lines: dict[str, dict[tuple[str, int], None]] = {}
        self._imported: dict[tuple[str, int], None] = {}
        self._spawning: set[str] = set()
        self._random: set[str] = set()
        self._current = ""
        self._tracer = LineTracer(lambda file: file.startswith(root)) if trace else None
        if self._tracer is not None:
            sys.addaudithook(self._on_audit)
            self._tracer.collect_into(self._imported)

    def result(self) -> dict[str, Any]:
        """Returns the observation as JSON.

        Returns:
            ``tests``: id, file and line of the function of each test; ``failures``: the visible
            part of the first failures, by test, or by file if its import fails; ``random``: tests
            that use the global random generator; ``lines``: the tests that ran a line, as a
            hexadecimal bit set, by file and line; ``imported``: the lines that ran during
            collection, by file; ``spawning``: tests that start processes.
        """
        return {
            "tests": [[test, *location] for test, location in self._functions.items()],
            "failures": self._failures,
            "random": sorted(self._random),
            "lines": _bit_sets(self._lines, list(self._functions), self._root),
            "imported": _by_file(self._imported, self._root),
            "spawning": sorted(self._spawning),
        }

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Records the function of each test."""
        for item in session.items:
            self._functions[self._name(item.nodeid)] = _function_place(item, self._root)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Records the lines of one test, and whether it uses randomness."""
        self._current = self._name(item.nodeid)
        before = random.getstate()
        if self._tracer is not None:
            self._tracer.collect_into(self._lines.setdefault(self._current, {}))
        with self._limited():
            yield
        if random.getstate() != before:
            self._random.add(self._current)
        self._current = ""

    def pytest_exception_interact(self, node: Any, call: Any) -> None:
        """Records the failure of a test, or of the import of its file."""
        error = call.excinfo.value
        if isinstance(error, pytest.Collector.CollectError):
            error = error.__cause__ or error
        if len(self._failures) < _MAX_DESCRIBED:
            self._failures.setdefault(self._name(node.nodeid), describe(error, self._root))

    def _on_audit(self, event: str, arguments: Any) -> None:
        del arguments
        if event in _PROCESSES and self._current:
            self._spawning.add(self._current)


def _function_place(item: pytest.Item, root: str) -> tuple[str, int]:
    """Returns the file, relative to the root, and the first line of a test's function."""
    function = getattr(item, "function", None) or getattr(item, "obj", None)
    try:
        code = inspect.unwrap(function).__code__  # type: ignore[arg-type]
    except (AttributeError, TypeError, ValueError):
        return "", 0
    name = os.path.realpath(code.co_filename)
    if not name.startswith(root):
        return "", 0
    return name[len(root) :], code.co_firstlineno


def _bit_sets(
    lines: dict[str, dict[tuple[str, int], None]], tests: list[str], root: str
) -> dict[str, dict[int, str]]:
    """Returns the tests that run each line of each file, as bit sets in hexadecimal."""
    bits: dict[str, dict[int, int]] = {}
    for number, test in enumerate(tests):
        for name, line in lines.get(test, ()):
            by_line = bits.setdefault(name[len(root) :], {})
            by_line[line] = by_line.get(line, 0) | 1 << number
    return {
        name: {line: f"{numbers:x}" for line, numbers in sorted(by_line.items())}
        for name, by_line in bits.items()
    }


def _by_file(lines: Iterable[tuple[str, int]], root: str) -> dict[str, list[int]]:
    by_file: dict[str, list[int]] = {}
    for name, line in sorted(lines):
        by_file.setdefault(name[len(root) :], []).append(line)
    return by_file
