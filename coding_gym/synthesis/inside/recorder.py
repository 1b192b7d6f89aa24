"""A pytest plugin that chooses tests, notes how they end, and what a user would see."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import inspect
import os
import random
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.reports import TestReport  # public under another name only since pytest 7

from .seen import describe
from .time_limit import limited

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from .line_tracer import LineTracer

_PROCESSES = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}
_MAX_DESCRIBED = 24


class Recorder:
    """Runs chosen tests of one pytest session.

    Args:
        root: The project's folder.
        selected: Ids of the tests to run; None for all.
        tracer: Collects the lines of each test, or None.
        is_reversed: Whether the tests run in the opposite order.
        limit_s: Seconds that one test may take, see `limited`; None for no limit.

    Attributes:
        outcomes: ``passed``, ``failed`` or ``skipped`` by test id, in the order of the run.
        functions: By test id, the file and line of the function that the test is.
        failures: By failed test, what a user would see; only of the first ones.
        lines: By test, the lines that it ran.
        imported: The lines that ran while tests were collected.
        spawning: Ids of tests that start processes.
        chancy: Ids of tests that drew from the random generator that all share.
        collect_error: What kept a file from being collected; "" where all could be.
    """

    def __init__(
        self,
        root: str,
        selected: Collection[str] | None = None,
        tracer: LineTracer | None = None,
        *,
        is_reversed: bool = False,
        limit_s: float | None = None,
    ) -> None:
        self.outcomes: dict[str, str] = {}
        self.functions: dict[str, tuple[str, int]] = {}
        self.failures: dict[str, dict[str, Any]] = {}
        self.lines: dict[str, dict[tuple[str, int], None]] = {}
        self.imported: dict[tuple[str, int], None] = {}
        self.spawning: set[str] = set()
        self.chancy: set[str] = set()
        self.collect_error = ""
        self._root = root
        self._selected = None if selected is None else frozenset(selected)
        self._tracer = tracer
        self._is_reversed = is_reversed
        self._limit_s = limit_s
        self._current = ""
        if tracer is not None:
            sys.addaudithook(self._on_audit)
            tracer.collect_into(self.imported)

    def result(self) -> dict[str, Any]:
        """Returns how the tests ended, as JSON."""
        return {
            "outcomes": self.outcomes,
            "functions": self.functions,
            "failures": self.failures,
            "chancy": sorted(self.chancy),
            "collect_error": self.collect_error,
        }

    def pytest_collectreport(self, report: Any) -> None:
        """Notes that a file could not be collected."""
        if report.outcome == "failed":
            said = str(report.longrepr).strip().splitlines() or [""]
            self.collect_error = self.collect_error or f"{report.nodeid}: {said[-1]}"[:300]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keeps what was chosen, in the wanted order."""
        if self._selected is not None:
            items[:] = [item for item in items if item.nodeid in self._selected]
        if self._is_reversed:
            items.reverse()
        for item in items:
            self.functions[item.nodeid] = _function_place(item, self._root)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Collects the lines of one test, and notes whether its outcome may be chance."""
        self._current = item.nodeid
        before = random.getstate()
        if self._tracer is not None:
            self._tracer.collect_into(self.lines.setdefault(item.nodeid, {}))
        with limited(self._limit_s) if self._limit_s else nullcontext():
            yield
        self._current = ""
        if random.getstate() != before:
            self.chancy.add(item.nodeid)

    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> TestReport | None:
        """Notes how a test failed, and spares pytest the readable account of it."""
        excinfo = call.excinfo
        if excinfo is None or excinfo.errisinstance(pytest.skip.Exception):
            return None
        if len(self.failures) < _MAX_DESCRIBED:
            self.failures.setdefault(item.nodeid, describe(excinfo, self._root))
        return TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr="failed",
            when=call.when,
            duration=call.stop - call.start,
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes the outcome of one phase of a test; expected failures count as skipped."""
        known = self.outcomes.get(report.nodeid)
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
        elif (report.skipped or hasattr(report, "wasxfail")) and known != "failed":
            self.outcomes[report.nodeid] = "skipped"
        elif report.when == "call" and known is None:
            self.outcomes[report.nodeid] = "passed"

    def _on_audit(self, event: str, arguments: Any) -> None:
        del arguments
        if event in _PROCESSES and self._current:
            self.spawning.add(self._current)


def _function_place(item: pytest.Item, root: str) -> tuple[str, int]:
    """The file, relative to the root, and the first line of a test's function; ("", 0) for none."""
    function = getattr(item, "function", None) or getattr(item, "obj", None)
    try:
        code = inspect.unwrap(function).__code__  # type: ignore[arg-type]
    except (AttributeError, TypeError, ValueError):
        return "", 0
    name = os.path.realpath(code.co_filename)
    if not name.startswith(root):
        return "", 0
    return name[len(root) :], code.co_firstlineno
