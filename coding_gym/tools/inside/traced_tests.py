"""A pytest plugin that notes how each test ended and which lines it ran."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import os
import re
import signal
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from .tracing import LineTracer
from .tree import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEST_S = 20.0
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_TEST_FILE = re.compile(r"(^|/)(tests?/|testing/|test_[^/]*$|[^/]*_test\.py$|conftest\.py$)")


class TestTookTooLong(BaseException):
    """Raised in a test that runs past its time; no ``except Exception`` swallows it."""

    __test__ = False


def plain_flags() -> list[str]:
    """Returns flags for a run in one process that leaves no files."""
    known = (("xdist", "-n0"), ("pytest_cov", "--no-cov"))
    extra = [flag for module, flag in known if find_spec(module) is not None]
    return ["-p", "no:cacheprovider", *extra]


def is_program(name: str, root: str) -> bool:
    """Whether a file is of the program and not of its tests or of what is installed."""
    inside = name.startswith(root + "/") and "/site-packages/" not in name
    return inside and not _TEST_FILE.search(name[len(root) + 1 :])


class TracedTests:
    """Notes outcomes, failures and lines.

    Args:
        root: The workspace, whose files' lines are noted.
        seconds: After which no further test starts.

    Attributes:
        outcomes: ``passed``, ``failed`` or ``skipped`` by test id, in the order of the run.
        failures: By failed test, what failed: ``test``, ``error``, ``place``.
        lines: By test, the lines that it ran, in the order of their first execution.
        broken: What could not be collected, and why.
    """

    def __init__(self, root: str, seconds: float) -> None:
        self.outcomes: dict[str, str] = {}
        self.failures: dict[str, dict[str, str]] = {}
        self.lines: dict[str, dict[tuple[str, int], None]] = {}
        self.broken: list[str] = []
        self._root = root
        self._tracer = LineTracer(lambda name: is_program(name, root))
        self._end = time.monotonic() + seconds

    @staticmethod
    def flags() -> list[str]:
        """Returns what pytest needs: no files, no output worth reading, one process."""
        flags = ["-q", "--tb=no", "--maxfail=0", "--continue-on-collection-errors"]
        return flags + plain_flags()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Notes the lines of one test, and limits its time."""
        self._tracer.collect_into(self.lines.setdefault(item.nodeid, {}))
        signal.signal(signal.SIGALRM, _on_alarm)
        signal.setitimer(signal.ITIMER_REAL, _TEST_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._tracer.collect_into({})
        if time.monotonic() > self._end:
            item.session.shouldstop = "out of time"

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
        """Notes what failed, and where the program was then."""
        yield
        info = call.excinfo
        if info is None or info.errisinstance(pytest.skip.Exception):
            return
        message = _ADDRESS.sub("0x", str(info.value).strip().split("\n")[0])
        error = printable(f"{info.typename}: {message}" if message else info.typename, 200)
        failure = {"test": printable(item.nodeid), "error": error, "place": self._place(info.tb)}
        self.failures.setdefault(item.nodeid, failure)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes the outcome of one phase of a test."""
        known = self.outcomes.get(report.nodeid)
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
        elif report.skipped and known != "failed":
            self.outcomes[report.nodeid] = "skipped"
        elif report.when == "call" and known is None:
            self.outcomes[report.nodeid] = "passed"

    def pytest_collectreport(self, report: Any) -> None:
        """Notes what could not be collected."""
        if report.failed:
            text = str(report.longrepr or "").strip().split("\n")[-1]
            self.broken.append(printable(f"{report.nodeid}: {text}", 300))

    def _place(self, entry: Any) -> str:
        """Returns the innermost place of a traceback that is in the workspace."""
        place = ""
        while entry is not None:
            code = entry.tb_frame.f_code
            if code.co_filename.startswith(self._root + "/"):
                path = os.path.relpath(code.co_filename, self._root)
                place = printable(f"{path}:{entry.tb_lineno} in {code.co_name}")
            entry = entry.tb_next
        return place


def _on_alarm(*_: Any) -> None:
    raise TestTookTooLong(f"the test ran longer than {_TEST_S:g}s")
