"""Where a bug may be: the visible tests run line by line, their files read, candidates ranked."""

import heapq
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field

from coding_gym.mutation.source import Source
from coding_gym.repair import driver
from coding_gym.repair.candidates import Candidate, candidates
from coding_gym.repair.findings import Findings
from coding_gym.repair.spectrum import Spectrum, SuspiciousLine, ochiai, statement_scores

_TEST_S = 3.0  # for one test, while lines are counted
_SUITE_S = 30.0  # for all of them
_MAX_SOURCE_CHARS = 100_000
_MAX_FIRST_CHARS = 400_000  # of the first file, which may be larger than that
_MAX_DEPTH = 200  # of a tree; chains of a thousand `elif` would exhaust the stack

Commands = Generator[str, str, "Localisation | None"]
"""Yields shell commands, is sent their output, returns what was found."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """How the visible tests go before any change.

    Attributes:
        failing: Ids of the failing tests that a repair must make pass; at most 12, none that hangs.
        known_failing: Ids of all failing tests; at most 200.
        num_tests: How many tests there are.
        in_order: Whether some fail only in the order of the whole suite.
        flags: Flags that pytest needs besides its arguments.
    """

    failing: tuple[str, ...]
    known_failing: tuple[str, ...]
    num_tests: int = 0
    in_order: bool = False
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Localisation:
    """What running the visible tests told of a program.

    Attributes:
        baseline: How they went.
        spectrum: Which lines how many tests executed; its failed ones are those to repair.
        sources: The program's files by path, as far as they parse.
        scores: Suspiciousness of statements, by path and first line.
    """

    baseline: Baseline
    spectrum: Spectrum
    sources: Mapping[str, Source] = field(repr=False)
    scores: Mapping[str, Mapping[int, float]] = field(repr=False)

    def candidates(self) -> Iterator[Candidate]:
        """Yields single-edit candidates of all files, in falling order of score."""
        by_file = [candidates(p, self.sources[p], self.scores[p]) for p in sorted(self.sources)]
        return heapq.merge(*by_file, key=lambda candidate: -candidate.score)

    def suspicious(self) -> list[SuspiciousLine]:
        """Returns the statements by their first lines, the most suspicious first."""
        found = [
            SuspiciousLine(path, line, score)
            for path, lines in self.scores.items()
            for line, score in lines.items()
        ]
        return sorted(found, key=lambda s: (-s.score, s.path, s.line))


def localise(test_arguments: str = "-q") -> Commands:
    """Runs the visible tests in a copy of the tree and ranks the program's statements.

    Everything is done by shell commands, so that an agent can do it through its tools.

    Args:
        test_arguments: Pytest's arguments for the visible tests.

    Returns:
        What was found, without sources where no test fails; None where the tests could not be run.
    """
    yield driver.install_command()
    request = {"arguments": test_arguments, "seconds": _SUITE_S, "test_s": _TEST_S}
    survey = yield from driver.ask("survey", request)
    found = None if survey is None else Findings.from_reply(survey)
    if found is None:
        return None
    sources = (yield from _read_sources(found.sizes)) if found.failing else {}
    spectrum = Spectrum(len(found.failing), found.num_passed, found.hits)
    return Localisation(
        baseline=Baseline(
            failing=found.failing,
            known_failing=found.known_failing,
            num_tests=found.num_tests,
            in_order=found.in_order,
            flags=found.flags,
        ),
        spectrum=spectrum,
        sources=sources,
        scores=statement_scores(sources, ochiai(spectrum)),
    )


def _read_sources(sizes: Mapping[str, int]) -> Generator[str, str, dict[str, Source]]:
    """Returns the files that failing tests ran, then others, as far as the limit allows."""
    paths: list[str] = []
    total = 0
    for path, size in sizes.items():
        total += size
        if total <= _MAX_SOURCE_CHARS or not paths:
            paths.append(path)
    reply = yield from driver.ask("sources", {"paths": paths})
    texts = (reply or {}).get("texts")
    sources: dict[str, Source] = {}
    room = _MAX_FIRST_CHARS
    for path in paths:
        text = texts.get(path) if isinstance(texts, dict) else None
        if not isinstance(text, str) or len(text) > room:
            continue
        room -= len(text)
        try:
            source = Source(path, text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # what does not parse cannot be edited by its tree
        if _depth(source) <= _MAX_DEPTH:
            sources[path] = source
    return sources


def _depth(source: Source) -> int:
    """Returns how many nodes of a file's tree lie one inside the other, at most."""
    depths: dict[object, int] = {source.tree: 0}
    for node, parent in source.parents.items():  # parents come first, save of shared leaves
        depths[node] = depths.get(parent, 0) + 1
    return max(depths.values(), default=0)
