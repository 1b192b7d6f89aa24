"""Runs visible tests line by line and ranks the lines that failing ones run."""

# ruff: noqa: PTH109, FURB188 - the program under test sees what is imported; Python 3.7

from __future__ import annotations

import os
import re
import signal
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from coding_gym.tools.inside.code_map import is_test, printable, read_regular
from coding_gym.tools.inside.tracing import LineTracer, ochiai_score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAX_LINES = 15
_MAX_FAILURES = 5
_TEST_S = 20.0
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


def locate(request: dict[str, Any], reply: Callable[[Any], None]) -> None:
    """Replies with suspicious lines.

    Args:
        request: ``arguments`` of pytest; ``named``, ids of the tests to look at, none for all that
            fail; ``quoted``, these as a refusal names them; ``seconds``, after which no
            further test starts.
        reply: Takes ``text`` and ``ok``.
    """
    root = os.getcwd()
    sys.path.insert(0, root)
    tests = TracedTests(root, request["seconds"])
    flags = ["-q", "--tb=no", "--maxfail=0", "--continue-on-collection-errors", *plain_flags()]
    pytest.main([*request["arguments"], *flags], plugins=[tests])
    named = [name[2:] if name.startswith("./") else name for name in request["named"]]
    all_failed = tests.that("failed")
    failed = [test for test in all_failed if _is_of(test, named)]
    passed = tests.that("passed")
    num_other = len(all_failed) - len(failed)
    broken = tests.broken[:_MAX_FAILURES]
    if failed:
        other = f", {num_other} other failing left aside" if num_other else ""
        rows = [f"{len(failed)} failing and {len(passed)} passing tests were compared{other}."]
        rows += [tests.failures[t] for t in failed[:_MAX_FAILURES] if t in tests.failures]
        rows += [f"could not be collected: {row}" for row in broken]
        rows += _suspicious_lines(tests, failed, passed)
    elif broken:
        rows = ["the tests could not be collected:", *broken]
    elif not any(_is_of(test, named) for test in tests.outcomes) and named:
        rows = [f"there is no test {request['quoted']} among those that were run"]
    else:
        others = f", {num_other} others fail" if num_other else ""
        rows = [f"nothing to locate: none of these tests fails ({len(passed)} pass{others})"]
    reply({"ok": bool(failed), "text": "\n".join(rows)})


def plain_flags() -> list[str]:
    """Returns flags for a run in one process that leaves no files."""
    known = (("xdist", "-n0"), ("pytest_cov", "--no-cov"))
    extra = [flag for module, flag in known if find_spec(module) is not None]
    return ["-p", "no:cacheprovider", *extra]


def _is_of(test: str, named: list[str]) -> bool:
    return not named or any(t == test or test.startswith((t + "[", t + "::")) for t in named)


def _suspicious_lines(tests: TracedTests, failed: list[str], passed: list[str]) -> list[str]:
    """Ranks lines by Ochiai's score; equal ones by how late the first failing test reached them."""
    counts: dict[tuple[str, int], list[int]] = {}
    for column, group in enumerate((failed, passed)):
        for test in group:
            for place in tests.lines.get(test, ()):
                counts.setdefault(place, [0, 0])[column] += 1
    reached = {place: number for number, place in enumerate(tests.lines.get(failed[0], ()))}
    rows = [
        (ochiai_score(len(failed), ef, ep), reached.get(place, -1), place, ef, ep)
        for place, (ef, ep) in counts.items()
        if ef
    ]
    rows.sort(key=lambda row: (-row[0], -row[1], row[2]))
    if not rows:
        return ["No line of the program was run by them: the fault is in what they import."]
    report = ["Suspicious lines (score: failed and passed tests that ran the line):"]
    for score, _, (name, line), ef, ep in rows[:_MAX_LINES]:
        code = (read_regular(name) or b"").decode("utf-8", "replace").split("\n")
        text = printable(code[line - 1].strip()) if line <= len(code) else ""
        path = printable(os.path.relpath(name, tests.root))
        report.append(f"{score:.2f} ({ef} failed, {ep} passed)  {path}:{line}: {text}")
    return report


class TestTookTooLong(BaseException):
    """Raised in a test that runs past its time; no ``except Exception`` swallows it."""

    __test__ = False


class TracedTests:
    """A pytest plugin that notes how each test ended and which lines it ran.

    Args:
        root: The workspace, whose files' lines are noted.
        seconds: After which no further test starts.

    Attributes:
        root: The workspace.
        outcomes: ``passed``, ``failed`` or ``skipped`` by test id, in the order of the run.
        failures: By failed test, what failed, and where.
        lines: By test, the lines of the program that it ran, in the order of their first execution.
        broken: What could not be collected, and why.
    """

    def __init__(self, root: str, seconds: float) -> None:
        self.root = root
        self.outcomes: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self.lines: dict[str, dict[tuple[str, int], None]] = {}
        self.broken: list[str] = []
        self._tracer = LineTracer(self._is_program)
        self._end = time.monotonic() + seconds

    def that(self, outcome: str) -> list[str]:
        """Returns the tests with an outcome."""
        return [test for test, known in self.outcomes.items() if known == outcome]

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
        failure = f"{printable(item.nodeid)}: {error}{self._place(info.tb)}"
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

    def _is_program(self, name: str) -> bool:
        """Whether a file is of the program and not of its tests or of what is installed."""
        inside = name.startswith(self.root + "/") and "/site-packages/" not in name
        return inside and not is_test(name[len(self.root) + 1 :])

    def _place(self, entry: Any) -> str:
        """Returns the innermost place of a traceback that is in the workspace."""
        place = ""
        while entry is not None:
            code = entry.tb_frame.f_code
            if code.co_filename.startswith(self.root + "/"):
                path = os.path.relpath(code.co_filename, self.root)
                place = " at " + printable(f"{path}:{entry.tb_lineno} in {code.co_name}")
            entry = entry.tb_next
        return place


def _on_alarm(*_: Any) -> None:
    raise TestTookTooLong(f"the test ran longer than {_TEST_S:g}s")
