"""A pytest plug-in that records failures, executed lines, and tests that use randomness."""

from __future__ import annotations

import importlib
import inspect
import os
import random
import resource
import signal
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .failures import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from types import FrameType

_PROCESSES = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}
_MAX_DESCRIBED = 24
# A process that uses a smaller share of a processor is waiting, even on a busy machine.
_IDLE_SHARE = 0.05
_SLACK_S = 1.0
# Wall seconds per processor second, for a process on a busy machine.
_WALL_PER_CPU = 4.0


def run(reporter: Any, settings: dict[str, Any]) -> int:
    """Runs tests, reports an observation, and returns pytest's exit code.

    Args:
        reporter: The object whose ``send`` receives records for the host.
        settings: The settings of ``Plugin`` in `coding_gym.grading.inside`; ``paths``: pytest's
            arguments; ``cpu_s``: maximum processor seconds of the run; ``limit_s``: maximum
            processor seconds of one test, or None; ``seed``: the seed of the random generator;
            ``trace``: whether executed lines are recorded.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    cpu_s = ceil(settings["cpu_s"]) + 1
    if hard == resource.RLIM_INFINITY or cpu_s < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, settings["cpu_s"])  # RLIMIT_CPU has whole seconds only
    random.seed(settings["seed"])
    grading = importlib.import_module(".plugin", __package__)  # the host sends it with this module
    plugin = grading.Plugin(reporter, settings)
    root = f"{os.path.realpath(Path.cwd())}/"
    observer = Observer(root, plugin.name, settings["limit_s"], trace=settings["trace"])
    arguments = [*settings["paths"], "-p", "no:cacheprovider"]
    status: int = grading.run_pytest(arguments, [plugin, observer])
    reporter.send("observed", observer.result())
    return status


class Observer:
    """Observes one pytest session.

    Args:
        root: The project's folder, with a slash at its end.
        name: Returns the id of a test from pytest's node id.
        limit_s: Maximum processor seconds of one test; None for no limit.
        trace: Whether executed lines are recorded.
    """

    def __init__(
        self,
        root: str,
        name: Callable[[str], str],
        limit_s: float | None,
        *,
        trace: bool,
    ) -> None:
        self._root, self._name, self._limit_s = root, name, limit_s
        self._functions: dict[str, tuple[str, int]] = {}
        self._failures: dict[str, dict[str, Any]] = {}
        self._lines: dict[str, dict[tuple[str, int], None]] = {}
        self._imported: dict[tuple[str, int], None] = {}
        self._spawning: set[str] = set()
        self._random: set[str] = set()
        self._current = ""
        self._tracer = _LineTracer(root) if trace else None
        if self._tracer is not None:
            sys.addaudithook(self._on_audit)
            self._tracer.collect_into(self._imported)

    def result(self) -> dict[str, Any]:
        """Returns the observation as JSON.

        Returns:
            ``tests``: id, file and line of the function of each test; ``failures``: the visible
            part of the first 24 failures, by test, or by file if its import fails; ``random``:
            tests that use the global random generator; ``lines``: the tests that ran a line, as a
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
            self._functions[self._name(item.nodeid)] = _function_location(item, self._root)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Records the lines that run during one test, and whether the test changes `random`."""
        self._current = self._name(item.nodeid)
        before = random.getstate()
        if self._tracer is not None:
            self._tracer.collect_into(self._lines.setdefault(self._current, {}))
        with _limited(self._limit_s) if self._limit_s else nullcontext():
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


class _LineTracer:
    """Records executed lines as keys (file name, line) of a dict, in the order of first execution.

    Args:
        root: The folder of the files whose lines are recorded, with a slash at its end.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._lines: dict[tuple[str, int], None] = {}

    def collect_into(self, lines: dict[tuple[str, int], None]) -> None:
        """Adds every line that runs after this call to ``lines``; starts tracing if necessary."""
        self._lines = lines
        if sys.gettrace() != self._on_call:  # not yet set, or replaced by a test
            threading.settrace(self._on_call)
            sys.settrace(self._on_call)

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        return self._on_line if frame.f_code.co_filename.startswith(self._root) else None

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if event == "line":
            self._lines.setdefault((frame.f_code.co_filename, frame.f_lineno))
        return self._on_line


class TestTookTooLong(BaseException):
    """Raised in a test that exceeds its time limit; ``except Exception`` does not catch it."""

    __test__ = False


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raises `TestTookTooLong` in a block that exceeds its limit, repeatedly until the block ends.

    Args:
        seconds: Maximum processor seconds of the block. A block that only waits is stopped after
            this number of wall-clock seconds plus one, any other block after four times this sum.
    """
    idle_s = seconds + _SLACK_S
    end = time.monotonic() + _WALL_PER_CPU * idle_s
    used_s = time.process_time()

    def on_computing(*_: Any) -> None:
        raise TestTookTooLong

    def on_waiting(*_: Any) -> None:
        nonlocal used_s
        before_s, used_s = used_s, time.process_time()
        if used_s - before_s < _IDLE_SHARE * idle_s or time.monotonic() > end:
            raise TestTookTooLong

    signal.signal(signal.SIGPROF, on_computing)
    signal.signal(signal.SIGALRM, on_waiting)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    signal.setitimer(signal.ITIMER_REAL, idle_s, idle_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _function_location(item: pytest.Item, root: str) -> tuple[str, int]:
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
