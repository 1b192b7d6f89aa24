"""A pytest plugin, sent into sandboxes: the tests that failed at first run before all others.

The others run only if those pass, and only until one breaks. It needs nothing but pytest, and runs
on any Python from 3.8 on. Beside it lies ``tests.json``, with the ids of the tests to repair
(``first``), of all that are known to fail (``known``), how many tests there are (``num_tests``),
whether their order matters (``in_order``), and how many seconds of the processor (``cpu_s``) and of
the clock (``wall_s``) one test may take. Loops burn the processor, whose time does not depend on
what else the machine does.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

_AGAIN_S = 1.0  # for code that swallows the exception


class TestTookTooLong(BaseException):
    """Raised in a test that runs past its time; no ``except Exception`` swallows it."""

    __test__ = False


def pytest_configure(config: pytest.Config) -> None:
    """Begins to watch, with what ``tests.json`` asks for."""
    asked = json.loads(Path(__file__).with_name("tests.json").read_text(encoding="utf-8"))
    config.pluginmanager.register(FailingFirst(asked))


class FailingFirst:
    """Orders the tests, ends the session where more of them decide nothing, and sums up.

    Args:
        asked: What ``tests.json`` holds.
    """

    def __init__(self, asked: dict[str, Any]) -> None:
        self._asked = asked
        self._first = set(asked["first"])
        self._known = set(asked["known"])
        self._outcomes: dict[str, str] = {}
        self._too_long: set[str] = set()
        # The last of the tests to repair: after it, the others run or do not.
        self._decides: set[str] = set()
        self._num_missing: int | None = None  # None where collecting itself failed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Puts the tests to repair in front, where order does not matter."""
        self._num_missing = max(0, self._asked["num_tests"] - len(items))
        if not self._asked["in_order"]:
            items.sort(key=lambda item: item.nodeid not in self._first)
            self._decides.update([item.nodeid for item in items if item.nodeid in self._first][-1:])
            if not self._decides:
                items.clear()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Limits the time of one test, and ends the session when its outcome decides."""
        own = item.nodeid

        def on_signal(*_: Any) -> None:
            self._too_long.add(own)
            raise TestTookTooLong

        signal.signal(signal.SIGPROF, on_signal)
        signal.signal(signal.SIGALRM, on_signal)
        signal.setitimer(signal.ITIMER_PROF, self._asked["cpu_s"], _AGAIN_S)
        signal.setitimer(signal.ITIMER_REAL, self._asked["wall_s"], _AGAIN_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        if own in self._too_long:
            self._outcomes[own] = "failed"  # even where the test swallowed the exception
        if own in self._too_long and (own in self._first or own not in self._known):
            item.session.shouldstop = "a test took too long"
        elif self._outcomes.get(own) == "failed" and own not in self._known:
            item.session.shouldstop = "a test broke"
        elif own in self._decides and self._num_fixed() < len(self._first):
            item.session.shouldstop = "a test that failed before still fails"

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes the outcome of one phase of a test."""
        if report.failed:
            self._outcomes[report.nodeid] = "failed"
        elif report.when == "call" and report.passed:
            self._outcomes.setdefault(report.nodeid, "passed")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Any:
        """Prints the line that says how it went, below everything but pytest's own last line."""
        yield
        broken = sum(o == "failed" for test, o in self._outcomes.items() if test not in self._known)
        broken += 1 if self._num_missing is None else self._num_missing
        fixed = f"{self._num_fixed()} of {len(self._first)} pass now"
        terminalreporter.write_line(f"failed before: {fixed}; others broken: {broken}")

    def _num_fixed(self) -> int:
        return sum(self._outcomes.get(test) == "passed" for test in self._first)
