"""Runs the visible tests in this process and records how each one ended."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.reports import TestReport  # public under another name only since pytest 7

from .clock import Stopwatch
from .place import TREE
from .subprocesses import gather
from .time_limit import TestTookTooLong, limited

if TYPE_CHECKING:
    from collections.abc import Generator

    from coding_gym.tools.inside.tracing import LineTracer

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_MAX_MESSAGE = 600


class Recorder:
    """A pytest plugin that notes outcomes.

    Args:
        tracer: Collects the lines of each test, or None.
        limit_s: Seconds that one test may take; see `limited`.
        total_s: Seconds of the processor, or a few times that by the clock, after which no further
            test starts.
        waits_s: Seconds that one test may wait besides.
        stops_on_timeout: Whether the session ends with the first test that takes too long.

    Attributes:
        outcomes: ``passed``, ``failed`` or ``skipped`` by test id, in the order of the run.
        signatures: By failed test, a text that says how it failed.
        lines: By test, the lines that it executed.
        slowest: Of the passed tests, the longest seconds of the processor and of the clock.
        imported: The lines executed while tests were collected.
        timed_out: Whether a test ran past its time; in a trial nothing runs after it.
    """

    def __init__(
        self,
        tracer: LineTracer | None = None,
        limit_s: float = 10.0,
        total_s: float = 1e9,
        *,
        waits_s: float = 0.0,
        stops_on_timeout: bool = False,
    ) -> None:
        self.outcomes: dict[str, str] = {}
        self.signatures: dict[str, str] = {}
        self.slowest = (0.0, 0.0)
        self.lines: dict[str, dict[tuple[str, int], None]] = {}
        self.imported: dict[tuple[str, int], None] = {}
        self.timed_out = False
        self._tracer = tracer
        self._limit_s = limit_s
        self._waits_s = waits_s
        self._stops_on_timeout = stops_on_timeout
        self._total_s = total_s
        self._watch = Stopwatch()

    def clear(self) -> None:
        """Forgets outcomes and signatures."""
        self.outcomes.clear()
        self.signatures.clear()

    def pytest_sessionstart(self) -> None:
        """Traces from before the tests are collected."""
        if self._tracer is not None:
            self._tracer.collect_into(self.imported)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Collects lines and limits time around one test."""
        if self._tracer is not None:
            self._tracer.collect_into(self.lines.setdefault(item.nodeid, {}))
        watch = Stopwatch()
        try:
            with limited(self._limit_s, self._waits_s):
                yield
        finally:
            if self.outcomes.get(item.nodeid) == "passed":
                cpu, wall = watch.spent()
                self.slowest = max(cpu, self.slowest[0]), max(wall, self.slowest[1])
            if self._tracer is not None:
                self._tracer.collect_into({})
                gather(self.lines[item.nodeid])
        if self._watch.is_past(self._total_s):
            item.session.shouldstop = "out of time"

    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> TestReport | None:
        """Notes how a test failed, and spares pytest the readable account of it."""
        excinfo = call.excinfo
        if excinfo is None or excinfo.errisinstance(pytest.skip.Exception):
            return None
        self.signatures[item.nodeid] = _signature(excinfo)
        if excinfo.errisinstance(TestTookTooLong):
            self.timed_out = True
            if self._stops_on_timeout:
                item.session.shouldstop = "a test took too long"
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
        """Notes the outcome of one phase of a test."""
        known = self.outcomes.get(report.nodeid)
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
        elif report.skipped and known != "failed":
            self.outcomes[report.nodeid] = "skipped"
        elif report.when == "call" and known is None:
            self.outcomes[report.nodeid] = "passed"


def run_pytest(arguments: list[str], plugins: list[Any]) -> None:
    """Runs pytest in this process, its output thrown away."""
    flags = ["-p", "no:cacheprovider", "--tb=native", "--maxfail=0", f"--rootdir={TREE}"]
    flags.append("--continue-on-collection-errors")
    flags += plugin_flags()
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
    pytest.main([*arguments, *flags], plugins=plugins)


def plugin_flags() -> list[str]:
    """Returns the flags that switch off what spreads tests over processes or writes files."""
    known = (("xdist", "-n0"), ("pytest_cov", "--no-cov"))
    return [flag for module, flag in known if find_spec(module) is not None]


def _signature(excinfo: Any) -> str:
    message = _ADDRESS.sub("0x", str(excinfo.value))[:_MAX_MESSAGE]
    place, entry = "", excinfo.tb
    while entry is not None:
        name = entry.tb_frame.f_code.co_filename
        if "test" in name.rsplit("/", 1)[-1]:
            place = f"{name}:{entry.tb_lineno}"
        entry = entry.tb_next
    return f"{excinfo.typename}|{message}|{place}"
