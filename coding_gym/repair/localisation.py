"""Fault localisation: traces the visible tests and ranks the statements of the program."""

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

TEST_CPU_S = 1.0  # for one test
_TRACED_TEST_CPU_S = 2.0  # while lines are traced
_ALONE_CPU_S = 20.0  # for the failing tests
_CPU_S = 60.0  # for all tests
_MAX_FAILING = 12
_MAX_SOURCE_BYTES = 100_000
# Size limit of the first file; it is higher than that of other files.
_MAX_FIRST_BYTES = 400_000
_MAX_DEPTH = 200  # of a syntax tree; chains of a thousand `elif` would exhaust the stack
_CONTINUE = "--continue-on-collection-errors"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The results of the visible tests before any change.

    Attributes:
        failing: Ids of the failing tests that a repair must make pass; at most 12.
        passing: Ids of the tests that passed.
        arguments: The arguments of pytest.
        in_order: Whether the tests in ``failing`` depend on other tests: alone, some of them pass.
            Every trial then runs all tests.
        cpu_s: Processor seconds of the failing tests without tracing, including the start of their
            process.
    """

    failing: tuple[str, ...]
    passing: tuple[str, ...] = field(default=(), repr=False)
    arguments: tuple[str, ...] = ()
    in_order: bool = False
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Localisation:
    """The result of a traced run of the visible tests.

    Attributes:
        baseline: Their results.
        spectrum: The number of tests that executed each line; failed tests are `Baseline.failing`.
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


def arguments_from(visible_test_command: str) -> str:
    """Returns the arguments of pytest in a test command; ``-q`` for commands of other programs.

    Args:
        visible_test_command: A shell command such as ``python -m pytest -q tests``.
    """
    try:
        words = shlex.split(visible_test_command)
    except ValueError:
        return "-q"
    for start in (["python", "-m", "pytest"], ["python3", "-m", "pytest"], ["pytest"]):
        if words[: len(start)] == start:
            return shlex.join(words[len(start) :])
    return "-q"


def localise(suite: Suite, arguments: str = "-q") -> Localisation | None:
    """Runs the visible tests and ranks the program's statements.

    The traced program can forge this result, which affects only its own repair candidates.

    Args:
        suite: The visible tests of the program.
        arguments: Pytest's arguments for the visible tests.

    Returns:
        The localisation, without sources if no test fails; None if the tests could not be run.

    Raises:
        GradingError, SandboxError: The infrastructure failed.
    """
    words = (*shlex.split(arguments), _CONTINUE)
    attempt = Attempt(paths=words, cpu_s=_CPU_S, limit_s=_TRACED_TEST_CPU_S)
    run = suite.run(attempt)
    if run is None or not run.outcomes:
        return None
    if run.failed:
        run = suite.run(replace(attempt, trace=True))
    return None if run is None else _localised(suite, run, words)


def _localised(suite: Suite, traced: SuiteRun, arguments: tuple[str, ...]) -> Localisation:
    failing = _chosen(traced)
    in_order, cpu_s = _run_alone(suite, failing) if failing else (False, 0.0)
    spectrum = _spectrum(traced, failing)
    sources = _read_sources(suite, _paths(traced, spectrum)) if failing else {}
    return Localisation(
        baseline=Baseline(
            failing=failing,
            passing=traced.passed,
            arguments=arguments,
            in_order=in_order,
            cpu_s=cpu_s,
        ),
        spectrum=spectrum,
        sources=sources,
        scores=statement_scores(sources, ochiai(spectrum)),
    )


def _chosen(run: SuiteRun) -> tuple[str, ...]:
    """Returns the failing tests to repair; if there are many, prefers different failures."""
    failures = run.observation.failures
    hung = {test for test, failure in failures.items() if failure.kind == "TestTookTooLong"}
    # Tests that hang slow down a search, so they are used only if no other test fails.
    quick = [test for test in run.failed if test not in hung] or run.failed
    first: dict[tuple[str, str], str] = {}
    for test in quick:
        failure = failures.get(test)
        if failure is not None:
            first.setdefault((failure.kind, failure.message), test)
    chosen = list(dict.fromkeys([*first.values(), *quick]))[:_MAX_FAILING]
    return tuple(test for test in quick if test in chosen)


def _run_alone(suite: Suite, failing: tuple[str, ...]) -> tuple[bool, float]:
    """Returns whether failing tests have other results alone, and the CPU seconds."""
    before_s = suite.spent_s
    run = suite.run(Attempt(tests=failing, cpu_s=_ALONE_CPU_S, limit_s=TEST_CPU_S))
    in_order = run is not None and set(run.failed) != set(failing)
    return in_order, suite.spent_s - before_s


def _spectrum(run: SuiteRun, failing: tuple[str, ...]) -> Spectrum:
    observed = run.observation
    numbered = [(number, test[0]) for number, test in enumerate(observed.tests)]
    failed_bits = sum(1 << number for number, test in numbered if test in failing)
    passed = set(run.passed)
    passed_bits = sum(1 << number for number, test in numbered if test in passed)
    hits: dict[Line, tuple[int, int]] = {}
    for path in filter(is_program, observed.lines):
        for line, bits in observed.lines[path].items():
            failed = (int(bits, 16) & failed_bits).bit_count()
            if failed:
                hits[path, line] = failed, (int(bits, 16) & passed_bits).bit_count()
    return Spectrum(len(failing), passed_bits.bit_count(), hits)


def _paths(run: SuiteRun, spectrum: Spectrum) -> list[str]:
    """Returns the program's files, sorted by how many failing tests ran their lines."""
    most: dict[str, tuple[int, int]] = {}
    for (path, _), (failed, passed) in spectrum.hits.items():
        most[path] = max(most.get(path, (0, 0)), (failed, -passed))
    ran = sorted(most, key=lambda path: (-most[path][0], -most[path][1], path))
    imported = run.observation.imported
    return [*ran, *sorted(p for p in imported if is_program(p) and p not in most)]


def _read_sources(suite: Suite, paths: list[str]) -> dict[str, Source]:
    """Returns the parsed files, up to the limit of their size."""
    sources: dict[str, Source] = {}
    num_left = _MAX_FIRST_BYTES
    with suite.open() as sandbox:
        for path in paths:
            try:
                data = sandbox.read_file(path, max_bytes=max(0, num_left))
            except (OSError, InvalidArgumentError):  # code of the program can name any path
                continue
            num_left = min(num_left, _MAX_SOURCE_BYTES) - len(data)
            source = Source.from_bytes(path, data)
            if source is not None and _depth(source) <= _MAX_DEPTH:
                sources[path] = source
    return sources


def _depth(source: Source) -> int:
    """Returns the depth of a file's syntax tree."""
    depths: dict[object, int] = {source.tree: 0}
    for node, parent in source.parents.items():  # parents come first, except for shared leaves
        depths[node] = depths.get(parent, 0) + 1
    return max(depths.values(), default=0)
