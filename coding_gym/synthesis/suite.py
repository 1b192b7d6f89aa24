"""Runs a project's tests in a sandbox that stays open, unbroken or with bugs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from coding_gym.errors import SandboxError, error_line
from coding_gym.grade import TestStatus
from coding_gym.grading.report import Run
from coding_gym.grading.supervision import ForkedRun, TestRunner, module_text
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.workspace import apply_patch
from coding_gym.workspace.pytest_layer import preloads

if TYPE_CHECKING:
    from coding_gym.synthesis.observation import Observation

_TIMEOUT_S = 1800.0
# Additional runs of a test that uses randomness: a test that fails half of the time fails in all
# of them with probability 1/256.
NUM_CHANCES = 8
_INSIDE, _OBSERVER = "coding_gym.synthesis.inside", ("failures", "line_tracer", "observer")
_FAILED = (TestStatus.FAILED, TestStatus.ERROR)


class ReplyError(SandboxError):
    """The report of a run is missing or malformed, which code of the project can cause."""


class _SlowRunsError(ReplyError):
    """The runs of one request took too long."""


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run of tests.

    Attributes:
        outcomes: Statuses by test id, in the order of the run.
        observation: Lines, failures and random draws of the tests.
        cpu_s: Processor seconds of the run.
        collect_error: The first error of the collection with its file, or the last line of pytest
            if no test ran; "" for none.
    """

    outcomes: Mapping[str, TestStatus]
    observation: "Observation" = field(repr=False)
    cpu_s: float
    collect_error: str = ""

    @classmethod
    def of(cls, report: Run, tail: str = "") -> "SuiteRun":
        """Converts a report.

        Args:
            report: The report of one run.
            tail: The end of the output of all runs.

        Raises:
            ReplyError: The report has another format.
        """
        from coding_gym.synthesis.observation import read_observation

        if report.is_forged:
            raise ReplyError("a run of the tests reported records of another format")
        error = "" if report.statuses else error_line(tail, "")
        if report.uncollected:
            path = report.uncollected[0]
            error = f"{path}: {report.messages.get(path, '')}"
        return cls(report.statuses, read_observation(report.observed), report.cpu_s, error)

    @property
    def failed(self) -> tuple[str, ...]:
        """Ids of the tests that failed, or whose set-up or tear-down failed."""
        return tuple(test for test, status in self.outcomes.items() if status in _FAILED)

    @property
    def passed(self) -> tuple[str, ...]:
        """Ids of the tests that passed."""
        return tuple(t for t, status in self.outcomes.items() if status is TestStatus.PASSED)


class SuiteSandbox:
    """An open sandbox that holds the project and runs its tests.

    Args:
        spec: The project's template.
        backend: Name of the sandbox backend.
        has_own_pytest: Whether pytest and its plug-ins come from the task's environment.

    Attributes:
        spent_s: Processor seconds of all runs so far, as the supervisor reports them.
    """

    def __init__(self, spec: SandboxSpec, backend: str, *, has_own_pytest: bool) -> None:
        self.spent_s = 0.0
        self._spec = replace(spec, preload=preloads(spec.env, has_own_pytest=has_own_pytest))
        self._backend, self._has_own_pytest = backend, has_own_pytest
        self._compiled: ForkedRun | None = None
        self._open()

    def _open(self) -> None:
        self._sandbox = open_sandbox(self._spec, backend=self._backend)
        self._runner = TestRunner(self._sandbox, has_own_pytest=self._has_own_pytest)
        if self._compiled is not None:
            self._report([self._compiled])

    def close(self) -> None:
        """Closes the sandbox; idempotent."""
        self._sandbox.close()

    def apply(self, patch: Patch) -> None:
        """Applies a patch to the tree.

        Raises:
            PatchError: The patch does not apply.
            SandboxError: The sandbox died.
        """
        apply_patch(self._sandbox, patch)

    def read_file(self, path: str, max_bytes: int) -> bytes | None:
        """Returns a file of the tree; None if it cannot be read or is too large.

        Raises:
            SandboxError: The sandbox died.
        """
        try:
            return self._sandbox.read_file(path, max_bytes=max_bytes)
        except OSError:
            return None

    def run_python(self, source: str, data: str) -> str:
        """Runs a Python program with ``data`` as standard input and returns its output.

        Raises:
            SandboxError: The sandbox died.
        """
        command = 'exec python -c "$SOURCE"'
        return self._sandbox.run(command, env={"SOURCE": source}, stdin=data.encode()).output

    def runs(
        self, requests: Sequence[ForkedRun], modules: Collection[str] = ()
    ) -> list[SuiteRun | None]:
        """Runs tests; the result is None for a run that took too long or ended its process.

        Args:
            requests: The runs.
            modules: Modules outside the project that the tests import; imported once for all runs.

        Raises:
            ReplyError: The reports of the runs are missing or malformed.
            SandboxError: The sandbox died.
        """
        report = self._report(requests, modules)
        return [None if run is None else SuiteRun.of(run, report.tail) for run in report.runs]

    def compile(self, paths: tuple[str, ...], cpu_s: float) -> None:
        """Writes the byte code of test files and of their imports.

        Raises:
            SandboxError: The sandbox died.
        """
        self._compiled = ForkedRun(paths=paths, tests=(), cpu_s=cpu_s, compiles=True)
        self._report([self._compiled])

    def attempt(
        self, attempts: Sequence[ForkedRun], modules: Collection[str] = ()
    ) -> list[SuiteRun | None]:
        """Runs the tests of broken programs, and again in reverse order if any test fails.

        An attempt is unstable if the outcomes of its two runs differ. The two runs use two fixed
        random seeds, so results are reproducible. Failing tests that use randomness must also fail
        in `NUM_CHANCES` more runs.

        Attempts with a time limit per test run once.

        Returns:
            The first run of each attempt; None if it took too long or ended its process, or if the
            attempt is unstable.

        Raises:
            ReplyError: The reports are missing or malformed, or name tests that were not requested.
            SandboxError: The sandbox died.
        """
        results = list(map(_checked, attempts, self.runs(attempts, modules)))
        again: list[ForkedRun] = []
        spans: dict[int, range] = {}
        for number, (attempt, run) in enumerate(zip(attempts, results, strict=True)):
            if run is not None and run.failed and attempt.limit_s is None:
                more = [replace(attempt, seed=1, reverse=True), *_chances(attempt, run)]
                spans[number] = range(len(again), len(again) + len(more))
                again += more
        second = self.runs(again, modules) if again else []
        for number, (first, *others) in spans.items():
            backwards, run = second[first], results[number]
            is_same = backwards and run and backwards.outcomes == run.outcomes
            if not is_same or not all(_all_fail(second[n], again[n]) for n in others):
                results[number] = None
        return results

    def attempt_each(
        self, attempts: Sequence[ForkedRun], modules: Collection[str] = ()
    ) -> list[SuiteRun | None]:
        """Does as `attempt`; an attempt that damages the reports has no run and affects no other.

        If all attempts together take too long, none has a run.

        After such a failure a new sandbox without applied patches replaces the old one: code under
        test can end the process that restores its files.

        Raises:
            SandboxError: The sandbox died.
        """
        try:
            return self.attempt(attempts, modules)
        except ReplyError as error:
            is_slow = isinstance(error, _SlowRunsError)
            self.close()
            self._open()
        if is_slow or len(attempts) == 1:
            return [None] * len(attempts)
        half = len(attempts) // 2
        parts = attempts[:half], attempts[half:]
        return [run for part in parts for run in self.attempt_each(part, modules)]

    def _report(self, requests: Sequence[ForkedRun], modules: Collection[str] = ()) -> Run:
        report = self._runner.run_forks(
            requests,
            timeout_s=_TIMEOUT_S,
            observer=tuple((name, module_text(name, _INSIDE)) for name in _OBSERVER),
            modules=modules,
        )
        if report.is_lost:
            raise ReplyError("the process that supervises the tests was killed or stopped")
        self.spent_s += report.cpu_s
        if len(report.runs) != len(requests):
            error = _SlowRunsError if report.timed_out else ReplyError
            reason = error_line(report.tail, "the code under test ended the process of all runs")
            if report.timed_out:
                reason = f"the time limit of {_TIMEOUT_S:g} s was reached"
            elif report.is_forged:
                reason = "the code under test wrote to the report, or too much was reported"
            raise error(f"only {len(report.runs)} of {len(requests)} runs completed: {reason}")
        return report


def test_files(tests: Iterable[str]) -> tuple[str, ...]:
    """Returns the files of tests, in the order of their first tests."""
    return tuple(dict.fromkeys(test.partition("::")[0] for test in tests))


def _chances(attempt: ForkedRun, run: SuiteRun) -> list[ForkedRun]:
    """Returns additional runs of failed tests that use randomness, each with another seed."""
    drawing = tuple(test for test in run.failed if test in run.observation.random)
    seeds = range(2, 2 + NUM_CHANCES) if drawing else ()
    return [replace(attempt, tests=drawing, seed=seed) for seed in seeds]


def _all_fail(run: SuiteRun | None, request: ForkedRun) -> bool:
    return run is not None and set(run.failed) == set(request.tests or ())


def _checked(attempt: ForkedRun, run: SuiteRun | None) -> SuiteRun | None:
    tests = attempt.tests
    if run is not None and tests is not None and (others := set(run.outcomes) - set(tests)):
        raise ReplyError(f"the report names a test that was not requested: {min(others)}")
    return run
