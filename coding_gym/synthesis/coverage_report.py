"""Measures which tests of the unbroken project are reliable, and which lines each test runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources

from coding_gym.errors import InvalidTaskError
from coding_gym.program_output import last_line
from coding_gym.synthesis.suite import NUM_CHANCES, Attempt, Suite, SuiteRun

_CPU_S = 300.0
_TRACING_FACTOR = 20  # maximum slowdown of a run with line tracing
_REMEDY = "remedy: install requirements with --install, or select test files with --tests"


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """One test of the project.

    Attributes:
        test_id: The id of the test.
        path: The file of the test function, relative to the tree; "" without a function.
        line: The first line of the function, including decorators.
        is_trusted: Whether the test passed in every run, in both orders.
    """

    test_id: str
    path: str
    line: int
    is_trusted: bool


@dataclass(frozen=True)
class CoverageReport:
    """The tests of the unbroken project, and the lines that each test runs.

    Attributes:
        tests: All tests, in the order of the run.
        lines: The tests that run a line, as a bit set of indices in ``tests``, by file and line.
        imported: The lines that run during collection, by file.
        spawning: Ids of tests that start processes; lines in these processes are not traced.
        cpu_s: Processor seconds of a run of all tests.
    """

    tests: tuple[SuiteTest, ...]
    lines: Mapping[str, Mapping[int, int]] = field(repr=False)
    imported: Mapping[str, frozenset[int]] = field(repr=False)
    spawning: frozenset[str]
    cpu_s: float

    @cached_property
    def by_id(self) -> Mapping[str, SuiteTest]:
        """The tests by their ids."""
        return {test.test_id: test for test in self.tests}

    @cached_property
    def trusted(self) -> tuple[str, ...]:
        """Ids of the tests that always pass."""
        return tuple(test.test_id for test in self.tests if test.is_trusted)

    @property
    def untrusted(self) -> tuple[str, ...]:
        """Ids of the tests that did not pass in every run: they fail, are skipped or are flaky."""
        return tuple(test.test_id for test in self.tests if not test.is_trusted)

    def is_run(self, path: str, lines: range) -> bool:
        """Returns whether a test, or the collection of tests, runs any line of a range."""
        by_line, imported = self.lines.get(path, {}), self.imported.get(path, frozenset())
        return any(line in by_line or line in imported for line in lines)

    def tests_of(self, path: str, lines: range) -> tuple[str, ...]:
        """Returns the ids of the trusted tests that a change of a range of lines can break."""
        if self.imported.get(path, frozenset()).intersection(lines):
            return self.trusted
        bits = 0
        for line in lines:
            bits |= self.lines.get(path, {}).get(line, 0)
        return tuple(
            test.test_id
            for number, test in enumerate(self.tests)
            if test.is_trusted and (bits >> number & 1 or test.test_id in self.spawning)
        )


def measure_coverage(suite: Suite, paths: Sequence[str]) -> CoverageReport:
    """Runs all tests three times: normally, with line tracing, and in reverse order.

    Each run has a different, fixed random seed. Tests that use randomness run eight more times.

    Args:
        suite: The tests of the project.
        paths: Test files and folders; if empty, the project's configuration selects the tests.

    Raises:
        InvalidTaskError: A run fails, no test is trusted, or a copy of the project is installed.
        GradingError, SandboxError: The infrastructure failed.
    """
    all_tests = Attempt(paths=tuple(paths), cpu_s=_CPU_S)
    plain_run = _run(suite, all_tests)
    traced_run = _run(suite, replace(all_tests, seed=1, trace=True, cpu_s=_TRACING_FACTOR * _CPU_S))
    reverse_run = _run(suite, replace(all_tests, seed=2, reverse=True))
    trusted_tests = _trusted_tests(suite, all_tests, (plain_run, traced_run, reverse_run))
    observed = traced_run.observation
    _check(suite, plain_run, trusted_tests, observed.imported)
    return CoverageReport(
        tests=tuple(SuiteTest(*t, is_trusted=t[0] in trusted_tests) for t in observed.tests),
        lines={
            path: {line: int(bits, 16) for line, bits in by_line.items()}
            for path, by_line in observed.lines.items()
        },
        imported={path: frozenset(lines) for path, lines in observed.imported.items()},
        spawning=frozenset(observed.spawning),
        cpu_s=plain_run.cpu_s,
    )


def _run(suite: Suite, attempt: Attempt) -> SuiteRun:
    run = suite.run(attempt)
    if run is None:
        raise InvalidTaskError(
            f"the tests exceeded the time limit, or damaged their process or report; {_REMEDY}"
        )
    return run


def _trusted_tests(suite: Suite, attempt: Attempt, runs: Sequence[SuiteRun]) -> set[str]:
    """Returns the tests that pass in every run and with every random seed."""
    trusted_tests = set.intersection(*(set(run.passed) for run in runs))
    random_tests = {t for run in runs for t in run.observation.random if t in trusted_tests}
    for seed in range(len(runs), len(runs) + NUM_CHANCES) if random_tests else ():
        run = suite.run(replace(attempt, tests=random_tests, seed=seed))
        trusted_tests -= random_tests.difference(() if run is None else run.passed)
    return trusted_tests


def _check(suite: Suite, run: SuiteRun, trusted_tests: set[str], imported: Iterable[str]) -> None:
    """Raises InvalidTaskError if no test is trusted, or a policy could read the repair."""
    if not trusted_tests and run.collect_error:
        raise InvalidTaskError(f"the tests cannot be run: {run.collect_error}; {_REMEDY}")
    if not run.outcomes:
        raise InvalidTaskError(
            "no tests were found; remedy: name the test files or folders with --tests, and "
            "install the requirements of the tests with --install"
        )
    if copies := find_copies(suite, list(imported)):
        raise InvalidTaskError(
            f"the environment contains a copy of the project ({copies[0]}), in which a policy "
            "could read the repair; remedy: install the project with: pip install -e ."
        )
    if not trusted_tests:
        errors = [f.summary.partition("\n")[0] for f in run.observation.failures.values()]
        cause = f"the first error: {errors[0]}" if errors else "all tests are skipped"
        raise InvalidTaskError(
            f"none of the {len(run.outcomes)} tests passes in the unbroken project; {cause}"
        )


def find_copies(suite: Suite, paths: Sequence[str]) -> list[str]:
    """Returns the paths at which policies can read installed copies of the project's files.

    Raises:
        InvalidTaskError: The Python of the environment does not run.
        SandboxError: The infrastructure failed.
    """
    source = resources.files("coding_gym.synthesis").joinpath("copies.py")
    with suite.open() as sandbox:
        result = sandbox.run(
            'exec python -I -c "$SOURCE"',  # -I hides modules of the project
            env={"SOURCE": source.read_text(encoding="utf-8")},
            stdin=json.dumps(paths).encode(),
        )
    if not result.ok:
        reason = last_line(result.output)
        raise InvalidTaskError(f"the environment cannot be searched for copies: {reason}")
    return [line for line in result.output.splitlines() if line.endswith(".py")]
