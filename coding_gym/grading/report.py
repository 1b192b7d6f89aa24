"""What a grading run reported, and how that is judged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from coding_gym.grade import TestStatus
from coding_gym.grading.formats.swebench import log_spellings

_PHASES = ("setup", "call", "teardown")
_MIN_CPU_SHARE = 0.5

CheckReport = tuple[int, int, str, list[str]]


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """One run of test files, as its supervisor saw it.

    Attributes:
        statuses: Status by node id of every test that was reported.
        checks: For each test the assertions that it executed, by number, with how often they passed
            and failed, the first failure, and the values that they compared.
        messages: How it failed, by node id, by file or by what else is to blame; one line each.
        uncollected: The files that could not be collected.
        observed: What the plugin of forked runs observed; JSON that code under test can forge.
        runs: The forked runs, each with what it reported, None if its process died or took too
            long, and the processor seconds that it used.
        shared: Whether those runs shared a start of pytest.
        ready: Whether the test framework could be imported.
        ended: Whether the run came to its own end.
        timed_out: Whether it was killed at its time limit.
        is_starved: Whether it timed out and used so little CPU time that another try may end; also
            where that is not known.
        out_of_memory: Whether everything was killed for the memory that it held.
        is_forged: Whether something other than the reporter wrote to the report, or flooded it.
        cpu_s: Processor seconds that the tests used.
        tail: The end of what the tests printed, for people.
    """

    statuses: Mapping[str, TestStatus] = field(default_factory=dict)
    checks: Mapping[str, Mapping[int, CheckReport]] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)
    uncollected: Sequence[str] = ()
    observed: object = None
    runs: "Sequence[tuple[RunReport | None, float]]" = ()
    shared: bool = False
    ready: bool = False
    ended: bool = False
    timed_out: bool = False
    is_starved: bool = False
    out_of_memory: bool = False
    is_forged: bool = False
    cpu_s: float = 0.0
    tail: str = ""

    @classmethod
    def from_verdict(cls, verdict: Mapping[str, Any]) -> "RunReport":
        """Reads what the supervisor printed; records of a wrong shape count as forged.

        Args:
            verdict: Its JSON. Where ``kinds`` is there, records of these kinds are expected, too.
        """
        records = _Records(kinds=verdict.get("kinds", ()))
        for record in verdict["records"]:
            records.read(record)
        timed_out = verdict["timed_out"]
        return cls(
            statuses={name: _status(phases) for name, phases in records.phases.items()},
            checks=records.checks,
            messages=records.messages,
            uncollected=records.uncollected,
            observed=records.observed,
            runs=records.runs,
            shared=records.shared,
            ready=records.ready,
            ended=records.ended,
            timed_out=timed_out,
            is_starved=timed_out and is_starved(verdict["cpu_s"], verdict["wall_s"]),
            is_forged=bool(records.is_forged or verdict["num_strays"] or verdict["flooded"]),
            cpu_s=verdict.get("cpu_s", 0.0),
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
        reports: dict[int, CheckReport] = {}
        for name in self._family(test_id):
            for number, (passed, failed, message, values) in self.checks.get(name, {}).items():
                earlier = reports.get(number, (0, 0, "", []))
                counts = earlier[0] + passed, earlier[1] + failed
                reports[number] = (*counts, earlier[2] or message, earlier[3] + values)
        return reports

    def message(self, test_id: str) -> str:
        """One line on why an expected test did not pass, or ""."""
        path = test_id.partition("::")[0]
        named = (test_id, *self.spellings.get(test_id, ()), path)
        return next((self.messages[name] for name in named if name in self.messages), "")

    @cached_property
    def spellings(self) -> Mapping[str, Sequence[str]]:
        """Node ids of reported tests by the other names that logs and tasks have for them."""
        return grouped((other, name) for name in self.statuses for other in log_spellings(name))

    def _family(self, test_id: str) -> Sequence[str]:
        return (test_id,) if test_id in self.statuses else self.spellings.get(test_id, ())


@dataclass(slots=True)
class _Records:
    """What the records of a run say; see the modules that send them, in ``inside/``.

    Those that only forked runs have are forged in other runs, and inside one another.
    """

    kinds: Sequence[str] = ()
    phases: dict[str, list[tuple[str, str, bool]]] = field(default_factory=dict)
    checks: dict[str, dict[int, CheckReport]] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    uncollected: list[str] = field(default_factory=list)
    observed: object = None
    runs: list[tuple[RunReport | None, float]] = field(default_factory=list)
    shared: bool = False
    ready: bool = False
    ended: bool = False
    is_forged: bool = False

    def read(self, record: Any) -> None:
        """Takes one record; one of a wrong shape counts as forged."""
        match record:
            case ["test", str(name), str(when), str(outcome), bool(expected), str(message)]:
                self.phases.setdefault(name, []).append((when, outcome, expected))
                if message:
                    self.messages.setdefault(name, message)
            case ["checks", str(name), [*rows]] if all(map(_is_check, rows)):
                self.checks[name] = {row[0]: (row[1], row[2], row[3], row[4]) for row in rows}
            case ["collect", str(name), str(outcome), str(message)]:
                self.messages.setdefault(name, message)
                self.uncollected += [name] if outcome == "failed" else []
            case ["ready"]:
                self.ready = True
            case ["end", int()]:
                self.ended = True
            case ["observed", observed] if "observed" in self.kinds:
                self.observed = observed
            case ["run", [*_] | None as records, float(cpu_s)] if "run" in self.kinds:
                self.runs.append((_forked_report(records), cpu_s))
            case ["shared", bool(shared)] if "shared" in self.kinds:
                self.shared = shared
            case _:
                self.is_forged = True


FORKED_KINDS = ("run", "shared")
"""Records of a process that forks runs."""


def _forked_report(records: list[Any] | None) -> RunReport | None:
    """Returns the report of a run whose records came through the process that forked it."""
    if records is None:
        return None
    verdict = {"records": records, "num_strays": 0, "flooded": False, "timed_out": False}
    verdict["kinds"] = ("observed",)
    return RunReport.from_verdict(verdict)


def _is_check(row: object) -> bool:
    match row:
        case [int(), int(), int(), str(), [*values]]:
            return all(isinstance(value, str) for value in values)
    return False


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Returns the second values of pairs by the first ones, in order."""
    groups: dict[str, list[str]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


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
