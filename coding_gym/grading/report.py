"""What a grading run reported, and how that is judged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coding_gym.grade import TestStatus
from coding_gym.grading.formats.swebench import log_spellings

_PHASES = ("setup", "call", "teardown")
_MIN_CPU_SHARE = 0.5

CheckReport = tuple[int, int, str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run of test files, as its supervisor saw it.

    Attributes:
        statuses: Status by node id of every test that was reported.
        spellings: Node ids of reported tests by the other names that logs and tasks have for them.
        checks: For each test the assertions that it executed, by number, with how often they passed
            and failed, the first failure, and the values that they compared.
        messages: How it failed, by node id, by file or by what else is to blame; one line each.
        ready: Whether the test framework could be imported.
        ended: Whether the run came to its own end.
        timed_out: Whether it was killed at its time limit.
        is_starved: Whether it timed out and used so little CPU time that another try may end; also
            where that is not known.
        out_of_memory: Whether everything was killed for the memory that it held.
        is_forged: Whether something other than the reporter wrote to the report, or flooded it.
        tail: The end of what the tests printed, for people.
    """

    statuses: Mapping[str, TestStatus] = field(default_factory=dict)
    spellings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    checks: Mapping[str, Mapping[int, CheckReport]] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)
    ready: bool = False
    ended: bool = False
    timed_out: bool = False
    is_starved: bool = False
    out_of_memory: bool = False
    is_forged: bool = False
    tail: str = ""

    @classmethod
    def from_verdict(cls, verdict: Mapping[str, Any]) -> "RunReport":
        """Reads what the supervisor printed; records of a wrong shape count as forged."""
        phases: dict[str, list[tuple[str, str, bool]]] = {}
        messages: dict[str, str] = {}
        checks: dict[str, dict[int, CheckReport]] = {}
        ready = ended = False
        is_forged = bool(verdict["num_strays"] or verdict["flooded"])
        for record in verdict["records"]:
            match record:
                case ["test", str(name), str(when), str(outcome), bool(expected), str(message)]:
                    phases.setdefault(name, []).append((when, outcome, expected))
                    if message:
                        messages.setdefault(name, message)
                case ["checks", str(name), [*rows]] if all(map(_is_check, rows)):
                    checks[name] = {row[0]: (row[1], row[2], row[3], row[4]) for row in rows}
                case ["collect", str(name), str(), str(message)]:
                    messages.setdefault(name, message)
                case ["ready", str()]:
                    ready = True
                case ["end", int()]:
                    ended = True
                case _:
                    is_forged = True
        spelt = {name: log_spellings(name) for name in phases}
        return cls(
            statuses={name: _status(seen) for name, seen in phases.items()},
            spellings=grouped((s, name) for name, known in spelt.items() for s in known - {name}),
            checks=checks,
            messages=messages,
            ready=ready,
            ended=ended,
            timed_out=verdict["timed_out"],
            is_starved=verdict["timed_out"] and is_starved(verdict["cpu_s"], verdict["wall_s"]),
            is_forged=is_forged,
            tail=verdict.get("tail", ""),
        )

    @property
    def never_began(self) -> bool:
        """Whether the test framework could not be started, and nothing of the tree is to blame."""
        return not (self.ready or self.timed_out or self.is_forged)

    def status(self, test_id: str) -> TestStatus:
        """Status of an expected test.

        An id that is not reported as it is stands for every reported test that is also spelt so,
        and passed only if all of these did: SWE-bench cut ids at the first white space, so that
        ``test_x[not`` may be ``test_x[not a]`` and ``test_x[not b]``.
        """
        family = [self.statuses.get(name, TestStatus.MISSING) for name in self._family(test_id)]
        worst = [s for s in family if s is not TestStatus.PASSED]
        return (worst or family or [TestStatus.MISSING])[0]

    def checked(self, test_id: str) -> dict[int, CheckReport]:
        """Returns the assertions that an expected test executed, by number."""
        found: dict[int, CheckReport] = {}
        for name in self._family(test_id):
            for number, (passed, failed, message, values) in self.checks.get(name, {}).items():
                before = found.get(number, (0, 0, "", []))
                counts = before[0] + passed, before[1] + failed
                found[number] = (*counts, before[2] or message, before[3] + values)
        return found

    def message(self, test_id: str) -> str:
        """One line on why an expected test did not pass, or ""."""
        path = test_id.partition("::")[0]
        named = (test_id, *self.spellings.get(test_id, ()), path)
        return next((self.messages[name] for name in named if name in self.messages), "")

    def _family(self, test_id: str) -> Sequence[str]:
        return (test_id,) if test_id in self.statuses else self.spellings.get(test_id, ())


def _is_check(row: object) -> bool:
    match row:
        case [int(), int(), int(), str(), [*values]]:
            return all(isinstance(value, str) for value in values)
    return False


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Returns the second values of pairs by the first ones, in order."""
    found: dict[str, list[str]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def is_starved(cpu_s: float, wall_s: float) -> bool:
    """Whether a run used so little of one core that it was waiting: for its turn, or for ever."""
    return cpu_s < _MIN_CPU_SHARE * wall_s


def _status(seen: Sequence[tuple[str, str, bool]]) -> TestStatus:
    """Status of one test from its phases as (phase, outcome, whether it was expected to fail)."""
    outcomes: dict[str, str] = {}
    is_expected = subtest_failed = False
    for when, outcome, expected in seen:
        if outcome == "rerun":  # by a marker of pytest-rerunfailures: all begins anew
            outcomes, is_expected, subtest_failed = {}, False, False
        elif when == "subtest":
            subtest_failed |= outcome == "failed" and not expected
        elif when in outcomes or when not in _PHASES:
            return TestStatus.ERROR
        else:
            outcomes[when] = outcome
            is_expected |= expected
    return _combine(outcomes, is_expected, subtest_failed)


def _combine(outcomes: Mapping[str, str], is_expected: bool, subtest_failed: bool) -> TestStatus:
    if "failed" in (outcomes.get("setup"), outcomes.get("teardown")):
        return TestStatus.ERROR
    if outcomes.get("call") == "failed" or subtest_failed:
        return TestStatus.FAILED
    if is_expected:
        return TestStatus.XFAILED
    if "skipped" in outcomes.values():
        return TestStatus.SKIPPED
    if all(outcomes.get(phase) == "passed" for phase in _PHASES):
        return TestStatus.PASSED
    return TestStatus.MISSING  # it began, and something ended it
