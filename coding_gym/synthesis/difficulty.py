"""How hard a bug is likely to be, from what its failures tell of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from coding_gym.synthesis.coverage_report import CoverageReport
from coding_gym.synthesis.mutants import Mutant

EASY, MEDIUM, HARD = "easy", "medium", "hard"
_MANY_FAILING, _FEW_FAILING = 8, 2
_SMALL_HAYSTACK, _LARGE_HAYSTACK = 60, 250


def difficulty(
    mutant: Mutant, failed: Sequence[str], failures: Mapping[str, Any], coverage: CoverageReport
) -> str:
    """Returns ``easy``, ``medium`` or ``hard``.

    Points are given for what a repair has to overcome: one for each edit after the first; one where
    the broken function shows in tracebacks but not at their ends, two where it shows in none; one
    each for at most 8 and at most 2 failing tests; one each for more than 60 and more than 250
    lines of the project that the failing test with the fewest runs. Up to 2 are easy, from 5 on
    hard.

    Args:
        mutant: The bug.
        failed: Ids of the tests that fail.
        failures: What a user would see of some of them.
        coverage: What the tests run.
    """
    points = len(mutant.mutations) - 1
    points += max(_distance(part.path, part.function, failures) for part in mutant.mutations)
    points += (len(failed) <= _MANY_FAILING) + (len(failed) <= _FEW_FAILING)
    haystack = _haystack(failed, coverage)
    points += (haystack > _SMALL_HAYSTACK) + (haystack > _LARGE_HAYSTACK)
    return EASY if points <= 2 else MEDIUM if points <= 4 else HARD


def _distance(path: str, function: str, failures: Mapping[str, Any]) -> int:
    distances = [2]
    for failure in failures.values():
        frames = [(frame[0], frame[2].rpartition(".")[2]) for frame in failure["frames"]]
        place = (path, function.rpartition(".")[2])
        if place in frames:
            distances.append(0 if frames[-1] == place else 1)
    return min(distances)


def _haystack(failed: Sequence[str], coverage: CoverageReport) -> int:
    """Lines of the project that the failing test runs that runs the fewest."""
    numbers = {test.test_id: number for number, test in enumerate(coverage.tests)}
    tests = {test.path for test in coverage.tests}
    bits = [
        found for path, by_line in coverage.lines.items() if path not in tests
        for found in by_line.values()
    ]  # fmt: skip
    few = list(failed)[:_MANY_FAILING]
    return min((sum(b >> numbers[test] & 1 for b in bits) for test in few), default=0)
