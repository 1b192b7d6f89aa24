"""The report of one test run, with the statuses of its tests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from coding_gym.calls import ExecResult
from coding_gym.grade import TestStatus
from coding_gym.grading.formats.swebench import log_spellings

_PHASES = ("setup", "call", "teardown")
# Statuses, the most severe last; an id of several tests has the most severe status.
_SEVERITY = ("passed", "xfailed", "skipped", "missing", "error", "failed")
_MAX_MESSAGE_CHARS = 300
_MAX_TAIL_CHARS = 4096


class CheckReport(NamedTuple):
    """The outcomes of one check in one test; a test can execute a check several times.

    Attributes:
        num_passed: Number of executions that passed.
        num_failed: Number of executions that failed.
        message: The message of the first failure.
        values: ``repr`` of values of the program that the check compared.
    """

    num_passed: int = 0
    num_failed: int = 0
    message: str = ""
    values: Sequence[str] = ()


@dataclass(kw_only=True)
class TestRun:
    """One run of test files.

    Attributes:
        statuses: Status of every reported test, by id.
        messages: One line about each failure, by test id or by file.
        recorded: The reports of the checks that each test executed, by test id and check number.
        uncollected: The files that could not be collected.
        observed: The result of the ``observer`` of `run_tests`, as JSON; code under test can forge
            this result.
        ended: Whether the run reached its end.
        timed_out: Whether the run was killed at its time limit.
        out_of_memory: Whether all processes of the run were killed at the memory limit.
        is_lost: Whether the supervisor was stopped or killed, which code under test can do.
        is_forged: Whether the report has text that the reporter did not write, or is too large.
        is_edited: Whether test files were changed while the tests ran.
        files: Content of the test files by path, after the patch and before edits of the grader.
        cpu_s: Processor seconds that the tests used.
        tail: The end of the output of the tests, for error messages.
        start_error: The failure that prevented the start of the tests; None if they started.
    """

    __test__ = False  # pytest collects classes called Test*

    statuses: dict[str, TestStatus] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    recorded: dict[str, dict[int, CheckReport]] = field(default_factory=dict)
    uncollected: list[str] = field(default_factory=list)
    observed: object = None
    ended: bool = False
    timed_out: bool = False
    out_of_memory: bool = False
    is_lost: bool = False
    is_forged: bool = False
    is_edited: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)
    cpu_s: float = 0.0
    tail: str = ""
    start_error: Exception | None = None

    @classmethod
    def from_records(cls, records: Iterable[Any], **facts: Any) -> "TestRun":
        """Returns the run that a reporter's records describe; invalid records set ``is_forged``.

        Args:
            records: JSON values that the modules in ``inside/`` send.
            facts: Values of further attributes.
        """
        run = cls(**facts)
        phases: dict[str, list[tuple[str, str, bool]]] = {}
        for record in records:
            run._read(record, phases)
        run.statuses = {name: _status(reports) for name, reports in phases.items()}
        return run

    def add(self, test_id: str, status: TestStatus, message: str = "") -> None:
        """Adds the status of one test; a test that is reported twice has the status ``ERROR``."""
        if test_id in self.statuses:
            status, message = TestStatus.ERROR, "the test was reported more than once"
        self.statuses[test_id] = status
        if message:
            self.messages[test_id] = " ".join(message.split())[:_MAX_MESSAGE_CHARS]

    def finish(self, result: ExecResult) -> "TestRun":
        """Adds the result of the test command; clears all statuses if the command was killed."""
        if result.timed_out or result.out_of_memory:
            self.statuses, self.messages, self.ended = {}, {}, False
        self.timed_out, self.out_of_memory = result.timed_out, result.out_of_memory
        self.tail = result.output[-_MAX_TAIL_CHARS:]
        return self

    @property
    def forgery(self) -> str:
        """A description of the tampering; "" without tampering."""
        if self.is_forged:
            return "the report has text that the reporter did not write, or is too large"
        return "the test files were changed while the tests ran" if self.is_edited else ""

    @property
    def has_ended(self) -> bool:
        """Whether the tests ran to their end."""
        return self.ended and not self.timed_out

    @property
    def is_whole(self) -> bool:
        """Whether the tests ran to their end, without tampering."""
        return self.has_ended and not self.forgery

    def status(self, test_id: str) -> TestStatus:
        """Returns the status of an expected test.

        SWE-bench cuts ids at the first white space: ``test_x[not`` can mean ``test_x[not a]`` or
        ``test_x[not b]``. An id that is not in the report stands for all reported tests with this
        shortened id, and has their most severe status.
        """
        return self.statuses.get(self._most_severe_id(test_id), TestStatus.MISSING)

    def checks(self, test_id: str) -> dict[int, CheckReport]:
        """Returns the reports of the checks that an expected test executed, by number."""
        reports: dict[int, CheckReport] = {}
        for name in self._same_id(test_id):
            for number, report in self.recorded.get(name, {}).items():
                earlier_report = reports.get(number, CheckReport())
                reports[number] = CheckReport(
                    earlier_report.num_passed + report.num_passed,
                    earlier_report.num_failed + report.num_failed,
                    earlier_report.message or report.message,
                    [*earlier_report.values, *report.values],
                )
        return reports

    def message(self, test_id: str) -> str:
        """Returns one line about the failure of an expected test, or ""."""
        names = (self._most_severe_id(test_id), test_id.partition("::")[0])
        return next((self.messages[name] for name in names if name in self.messages), "")

    @cached_property
    def _spellings(self) -> Mapping[str, Sequence[str]]:
        """Ids of reported tests, by the shortened ids that SWE-bench's log readers return."""
        names: dict[str, list[str]] = {}
        for name in self.statuses:
            for spelling in log_spellings(name):
                names.setdefault(spelling, []).append(name)
        return names

    def _most_severe_id(self, test_id: str) -> str:
        """Returns the id of the reported test that decides the status of an expected test."""
        names = self._same_id(test_id)
        return max(names, key=lambda name: _SEVERITY.index(self.statuses[name]), default=test_id)

    def _same_id(self, test_id: str) -> Sequence[str]:
        """Returns the ids of the reported tests for which an expected id stands."""
        return (test_id,) if test_id in self.statuses else self._spellings.get(test_id, ())

    def _read(self, record: Any, phases: dict[str, list[tuple[str, str, bool]]]) -> None:
        """Adds one record to the attributes; collects reports of tests in ``phases``, by id."""
        match record:
            case ["test", str(name), str(phase), str(outcome), bool(is_xfail), str(message)]:
                phases.setdefault(name, []).append((phase, outcome, is_xfail))
                if message:
                    self.messages.setdefault(name, message)
            case ["checks", str(name), [*rows]] if all(map(_is_check, rows)):
                self.recorded[name] = {number: CheckReport(*report) for number, *report in rows}
            case ["collect", str(name), str(outcome), str(message)]:
                self.messages.setdefault(name, message)
                if outcome == "failed":
                    self.uncollected.append(name)
            case ["ready"]:
                pass
            case ["end", int()]:
                self.ended = True
            case ["observed", observed]:
                self.observed = observed
            case _:
                self.is_forged = True


def _is_check(row: object) -> bool:
    """Returns whether a row has the number of a check and the values of a `CheckReport`."""
    match row:
        case [int(), int(), int(), str(), [*values]]:
            return all(isinstance(value, str) for value in values)
    return False


def _status(reports: Sequence[tuple[str, str, bool]]) -> TestStatus:
    """Returns the status of a test from reports: phase, outcome, and whether it is an xfail."""
    outcomes: dict[str, str] = {}
    has_xfail = subtest_failed = False
    for phase, outcome, is_xfail in reports:
        if outcome == "rerun":  # a marker of pytest-rerunfailures starts the test again
            outcomes, has_xfail, subtest_failed = {}, False, False
        elif phase == "subtest":
            subtest_failed = subtest_failed or (outcome == "failed" and not is_xfail)
        elif phase in outcomes or phase not in _PHASES:
            return TestStatus.ERROR
        else:
            outcomes[phase] = outcome
            has_xfail = has_xfail or is_xfail
    return _combine(outcomes, has_xfail, subtest_failed)


def _combine(outcomes: Mapping[str, str], has_xfail: bool, subtest_failed: bool) -> TestStatus:
    """Returns the status of a test from its outcomes, by phase."""
    if "failed" in (outcomes.get("setup"), outcomes.get("teardown")):
        return TestStatus.ERROR
    if outcomes.get("call") == "failed" or subtest_failed:
        return TestStatus.FAILED
    if has_xfail:
        return TestStatus.XFAILED
    if "skipped" in outcomes.values():
        return TestStatus.SKIPPED
    if all(outcomes.get(phase) == "passed" for phase in _PHASES):
        return TestStatus.PASSED
    return TestStatus.MISSING  # the test began and did not end
