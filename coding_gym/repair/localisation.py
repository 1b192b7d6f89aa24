"""Fault localisation: traces the visible tests and ranks the program's statements."""

import heapq
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from coding_gym.errors import InvalidArgumentError
from coding_gym.mutation.source import Source
from coding_gym.repair.candidates import Candidate, candidates
from coding_gym.repair.spectrum import Line, Spectrum, ochiai, statement_scores
from coding_gym.synthesis.project import is_program
from coding_gym.synthesis.suite import Attempt, Suite, SuiteRun

TEST_CPU_S = 1.0  # processor seconds of one test
_TRACED_TEST_CPU_S = 2.0  # processor seconds of one test with line tracing
_ALONE_CPU_S = 20.0  # processor seconds of the failing tests
_CPU_S = 60.0  # processor seconds of all tests
_MAX_FAILING_TESTS = 12
_MAX_SOURCE_BYTES = 100_000  # of all files together
_MAX_FIRST_BYTES = 400_000  # of the first file, which may exceed the limit of all files
_MAX_DEPTH = 200  # of a syntax tree; chains of a thousand `elif` would exhaust the stack
_CONTINUE = "--continue-on-collection-errors"
_PYTEST = (["python", "-m", "pytest"], ["python3", "-m", "pytest"], ["pytest"])
_OPERATORS = "();<>|&\n"  # characters of the shell's operators


@dataclass(frozen=True, slots=True)
class Baseline:
    """The results of the visible tests before any change.

    Attributes:
        failing: Ids of the failing tests that a repair must fix; at most 12.
        passing: Ids of the tests that passed.
        arguments: The arguments of pytest.
        needs_all_tests: Whether a test in ``failing`` does not fail if only the tests in
            ``failing`` run. Every trial then runs all tests.
        cpu_s: Processor seconds of the failing tests without tracing, including the start of their
            process.
    """

    failing: tuple[str, ...]
    passing: tuple[str, ...] = field(default=(), repr=False)
    arguments: tuple[str, ...] = ()
    needs_all_tests: bool = False
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Localisation:
    """The result of a traced run of the visible tests.

    Attributes:
        baseline: The results of the tests.
        spectrum: The number of tests of ``baseline`` that executed each line.
        sources: The files of the program that parse, by path.
        scores: Suspiciousness of statements, by path and first line.
    """

    baseline: Baseline
    spectrum: Spectrum
    sources: Mapping[str, Source] = field(repr=False)
    scores: Mapping[str, Mapping[int, float]] = field(repr=False)

    def candidates(self) -> Iterator[Candidate]:
        """Yields the candidates of all files, in descending order of score."""
        by_file = [candidates(self.sources[p], self.scores[p]) for p in sorted(self.sources)]
        return heapq.merge(*by_file, key=lambda candidate: -candidate.score)


def arguments_from(visible_test_command: str) -> tuple[str, ...]:
    """Returns the arguments of pytest in a test command.

    The result is empty for another program or several commands; pytest then runs the whole suite.

    Args:
        visible_test_command: A shell command such as ``python -m pytest -q tests``.
    """
    lexer = shlex.shlex(visible_test_command.strip(), posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        words = list(lexer)
    except ValueError:  # an unclosed quotation mark
        return ()
    start = next((start for start in _PYTEST if words[: len(start)] == start), None)
    if start is None or any(set(word) <= set(_OPERATORS) for word in words):
        return ()
    return tuple(words[len(start) :])


def localise(suite: Suite) -> Localisation | None:
    """Runs the visible tests and ranks the program's statements.

    The traced program can forge the result; this affects only the program's repair candidates.

    Args:
        suite: The visible tests of the program.

    Returns:
        The localisation, without sources if no test fails; None if the tests could not be run.

    Raises:
        GradingError, SandboxError: The infrastructure failed.
    """
    arguments = (*arguments_from(suite.task.visible_test_command), _CONTINUE)
    attempt = Attempt(paths=arguments, cpu_s=_CPU_S, limit_s=_TRACED_TEST_CPU_S)
    run = suite.run(attempt)
    if run is None or not run.outcomes:
        return None
    if run.failed:
        run = suite.run(replace(attempt, trace=True))
    return None if run is None else _localisation(suite, run, arguments)


def _localisation(suite: Suite, traced_run: SuiteRun, arguments: tuple[str, ...]) -> Localisation:
    failing_tests = _select_failing_tests(traced_run)
    needs_all_tests, cpu_s = _run_alone(suite, failing_tests) if failing_tests else (False, 0.0)
    spectrum = _spectrum(traced_run, failing_tests)
    sources = _read_sources(suite, _paths(traced_run, spectrum)) if failing_tests else {}
    return Localisation(
        baseline=Baseline(
            failing=failing_tests,
            passing=traced_run.passed,
            arguments=arguments,
            needs_all_tests=needs_all_tests,
            cpu_s=cpu_s,
        ),
        spectrum=spectrum,
        sources=sources,
        scores=statement_scores(sources, ochiai(spectrum)),
    )


def _select_failing_tests(run: SuiteRun) -> tuple[str, ...]:
    """Returns at most 12 failing tests to repair; prefers tests with different failures."""
    failures = run.observation.failures
    slow_tests = {test for test, failure in failures.items() if failure.kind == "TestTookTooLong"}
    # Tests that hang slow down a search, so they are used only if no other test fails.
    tests = [test for test in run.failed if test not in slow_tests] or run.failed
    test_by_failure: dict[tuple[str, str], str] = {}
    for test in tests:
        failure = failures.get(test)
        if failure is not None:
            test_by_failure.setdefault((failure.kind, failure.message), test)
    selected_tests = list(dict.fromkeys([*test_by_failure.values(), *tests]))[:_MAX_FAILING_TESTS]
    return tuple(test for test in tests if test in selected_tests)


def _run_alone(suite: Suite, failing_tests: tuple[str, ...]) -> tuple[bool, float]:
    """Runs the failing tests alone; returns whether any result changes, and the CPU seconds."""
    before_s = suite.spent_s
    run = suite.run(Attempt(tests=failing_tests, cpu_s=_ALONE_CPU_S, limit_s=TEST_CPU_S))
    needs_all_tests = run is not None and set(run.failed) != set(failing_tests)
    return needs_all_tests, suite.spent_s - before_s


def _spectrum(run: SuiteRun, failing_tests: tuple[str, ...]) -> Spectrum:
    observation = run.observation
    numbered_tests = [(number, test[0]) for number, test in enumerate(observation.tests)]
    failed_bits = sum(1 << number for number, test in numbered_tests if test in failing_tests)
    passed_tests = set(run.passed)
    passed_bits = sum(1 << number for number, test in numbered_tests if test in passed_tests)
    hits: dict[Line, tuple[int, int]] = {}
    for path in filter(is_program, observation.lines):
        for line, bits in observation.lines[path].items():
            num_failed = (int(bits, 16) & failed_bits).bit_count()
            if num_failed:
                hits[path, line] = num_failed, (int(bits, 16) & passed_bits).bit_count()
    return Spectrum(len(failing_tests), passed_bits.bit_count(), hits)


def _paths(run: SuiteRun, spectrum: Spectrum) -> list[str]:
    """Returns the program's files; files with a line that more failing tests run come first."""
    max_hits: dict[str, tuple[int, int]] = {}
    for (path, _), (num_failed, num_passed) in spectrum.hits.items():
        max_hits[path] = max(max_hits.get(path, (0, 0)), (num_failed, -num_passed))
    run_paths = sorted(max_hits, key=lambda path: (-max_hits[path][0], -max_hits[path][1], path))
    imported_paths = run.observation.imported
    return [*run_paths, *sorted(p for p in imported_paths if is_program(p) and p not in max_hits)]


def _read_sources(suite: Suite, paths: list[str]) -> dict[str, Source]:
    """Returns the parsed files; skips files that are too large, invalid or deeply nested."""
    sources: dict[str, Source] = {}
    remaining_bytes = _MAX_FIRST_BYTES
    with suite.open() as sandbox:
        for path in paths:
            try:
                data = sandbox.read_file(path, max_bytes=max(0, remaining_bytes))
            except (OSError, InvalidArgumentError):  # the program can report any path
                continue
            remaining_bytes = min(remaining_bytes, _MAX_SOURCE_BYTES) - len(data)
            source = Source.from_bytes(path, data)
            if source is not None and _depth(source) <= _MAX_DEPTH:
                sources[path] = source
    return sources


def _depth(source: Source) -> int:
    depths: dict[object, int] = {source.tree: 0}
    for node, parent in source.parents.items():  # parents come first, except for shared leaves
        depths[node] = depths.get(parent, 0) + 1
    return max(depths.values(), default=0)
