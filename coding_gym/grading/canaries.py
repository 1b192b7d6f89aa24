"""Canaries: copies of hidden tests, under names that do not tell, that must fail.

Code under test shares a process with the tests, so it can turn failures into passes. It cannot
easily tell which failures are meant: a run in which a canary passes was tampered with.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from coding_gym.grading.suite_file import Canary, Candidate, SuiteFile

MIN_CANARIES = 2
MAX_FILES = 8


def plant(
    files: Mapping[str, bytes],
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    rng: Random,
    *,
    avoid: frozenset[str] = frozenset(),
) -> tuple[tuple[Canary, ...], dict[str, bytes]]:
    """Chooses canaries and writes them into test files.

    Every file that holds expected tests gets one, up to `MAX_FILES` files; a file with tests that
    the bug breaks gets two. Files that this interpreter cannot parse get none, and the fewest
    canaries over all files are `MIN_CANARIES` wherever one test is fit to be copied.

    Args:
        files: Test files by path, as they would run without canaries.
        fail_to_pass: Node ids of the tests that the bug breaks.
        pass_to_pass: Node ids of the other expected tests.
        rng: Decides which, and how they read; it must not be foreseeable by a policy.
        avoid: Node ids (without parameters) of tests that did not make good canaries before; they
            are chosen again only where a file has no others, as no file may get out of having one.

    Returns:
        The canaries, and the new content of the files that hold them.
    """
    sources = _parse(files)
    broken, working = _by_file(fail_to_pass), _by_file(pass_to_pass)
    paths = sorted(sources, key=lambda path: (path not in broken, rng.random()))
    picks: dict[str, list[Candidate]] = {}
    for path in paths[:MAX_FILES]:
        number = 2 if path in broken else 1
        groups = [broken.get(path, []), working.get(path, [])]
        picks[path] = _pick(sources[path], groups, avoid, number, rng) or _pick(
            sources[path], groups, frozenset(), number, rng
        )
    _fill_up(picks, rng)
    canaries: list[Canary] = []
    changed: dict[str, bytes] = {}
    for path, chosen in picks.items():
        if chosen:
            planted, changed[path] = sources[path].insert(chosen, rng)
            canaries += planted
    return tuple(canaries), changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """Tests that were turned against themselves.

    Attributes:
        tests: Their node ids, without parameters.
        changed: The new content of the files that hold them, by path.
    """

    tests: tuple[str, ...] = ()
    changed: Mapping[str, bytes] = field(default_factory=dict)


def contradict(files: Mapping[str, bytes], tests: Iterable[str], rng: Random) -> Turned:
    """Turns tests against themselves, where they stand, as far as that can be done for sure.

    A run with them looks to code under test as any other does, canaries included, and none of them
    can pass: whatever claims that one does has not run it, or equals what it is compared with.

    Args:
        files: Test files by path, as they would run without canaries.
        tests: Node ids of tests that pass there.
        rng: Decides what they ask for instead; it must not be foreseeable by a policy.
    """
    wanted = _by_file(tests)
    turned: list[str] = []
    changed: dict[str, bytes] = {}
    for path, source in _parse({p: files[p] for p in wanted if p in files}).items():
        found, data = source.contradict(dict.fromkeys(wanted[path]), rng)
        if found:
            turned += [f"{path}::{original}" for original in found]
            changed[path] = data
    return Turned(tests=tuple(turned), changed=changed)


def _parse(files: Mapping[str, bytes]) -> dict[str, SuiteFile]:
    sources = {}
    for path, data in files.items():
        if path.endswith(".py"):
            try:
                sources[path] = _suite_file(path, data)
            except (SyntaxError, ValueError, RecursionError, LookupError):
                continue  # another Python's syntax, or no text at all: it gets no canary
    return sources


# Every run of a grade needs the same ones, and so do most tasks of a project.
@lru_cache(maxsize=64)
def _suite_file(path: str, data: bytes) -> SuiteFile:
    return SuiteFile(path, data)


def _pick(
    source: SuiteFile,
    groups: Sequence[Sequence[str]],
    avoid: frozenset[str],
    number: int,
    rng: Random,
) -> list[Candidate]:
    """Up to ``number`` tests of a file: the first group first, plainly decorated ones first.

    Among those, tests that end in a comparison come first.
    """
    ranked: dict[str, Candidate] = {}
    for group in groups:
        fit = [c for c in source.candidates(group) if f"{c.path}::{c.original}" not in avoid]
        rng.shuffle(fit)
        for candidate in sorted(fit, key=lambda c: (not c.plain, not c.compares)):
            ranked.setdefault(candidate.original, candidate)
    return list(ranked.values())[:number]


def _fill_up(picks: dict[str, list[Candidate]], rng: Random) -> None:
    """Copies tests once more where there are too few canaries."""
    chosen = [candidate for found in picks.values() for candidate in found]
    missing = MIN_CANARIES - len(chosen)
    for _ in range(missing if chosen else 0):
        candidate = rng.choice(chosen)
        picks[candidate.path].append(candidate)


def _by_file(test_ids: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for test_id in test_ids:
        path, _, rest = test_id.partition("::")
        found.setdefault(path, []).append(rest.partition("[")[0])
    return found
