"""The challenge: each unit of tests is negated in one of two runs, drawn in secret.

A correct program passes a unit in the run where it is plain and fails it in the other. A program
that reports what it likes has to guess every draw, even if the two runs tell each other what they
see.
"""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from coding_gym.grade import TestStatus
from coding_gym.grading.negation import Candidate, Negation, TestFile
from coding_gym.syntax import Function

Unit = frozenset[str]
Draw = tuple[frozenset[str], frozenset[str]]
Statuses = Callable[[str], TestStatus]

MIN_COINS = 6
"""A program that guesses every draw is resolved once in two to this power."""


class Suite:
    """The test files of a task, and where in them its expected tests are defined.

    A *location* is a path and a function in it, ``tests/test_x.py::TestA::test_b``; tests of
    derived classes share the location of the class that defines them.

    Args:
        files: Content by path, with the hidden tests and the patch applied.
        functions: For each expected test the ids, without parameters, of its test functions.
        renames: Whether tests with parameters may get other names; their order stays.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        functions: Mapping[str, Collection[str]],
        *,
        renames: bool = False,
    ) -> None:
        self._files: dict[str, TestFile] = {}
        for path, data in files.items():
            if path.endswith(".py"):
                try:
                    self._files[path] = _test_file(data, renames)
                except (SyntaxError, ValueError, RecursionError, LookupError):
                    continue  # another Python's syntax, or no text at all
        self.locations: dict[str, Unit] = {}
        for test, names in functions.items():
            found = [self._locate(name) for name in names]
            self.locations[test] = frozenset(found) if all(found) else frozenset()

    def candidates(self, location: str) -> tuple[Candidate, ...]:
        """Returns the ways to negate the function at a location, the strongest first."""
        path, _, name = location.partition("::")
        return self._files[path].candidates(name) if path in self._files else ()

    def usable(self, location: str) -> tuple[int, ...]:
        """Returns which of these can be used."""
        path, _, name = location.partition("::")
        return self._files[path].usable(name) if path in self._files else ()

    def digest(self, location: str) -> str:
        """Returns a digest of the function at a location."""
        path, _, name = location.partition("::")
        return self._files[path].digest(name) if path in self._files else ""

    def rewritten(
        self, negations: Mapping[str, Negation], negated: Collection[str], rng: Random
    ) -> dict[str, bytes]:
        """Returns the new content of the files that hold some functions.

        Args:
            negations: How functions are negated, by location; all of them get that shape.
            negated: The locations of those that are negated.
            rng: Decides what they ask for; no policy may foresee it.
        """
        by_file: dict[str, dict[str, Negation]] = {}
        for location, negation in negations.items():
            path, _, name = location.partition("::")
            by_file.setdefault(path, {})[name] = negation
        return {
            path: self._files[path].rewritten(
                found, {name for name in found if f"{path}::{name}" in negated}, rng
            )
            for path, found in by_file.items()
        }

    def callers(self) -> list[Unit]:
        """Returns tests with those of their file that they seem to call.

        A plain name stands for a function of the module, an attribute for any method of its name.
        """
        # Locations by path and name; names of methods begin with a dot.
        names: dict[str, dict[str, set[str]]] = {}
        for location in frozenset[str]().union(*self.locations.values()):
            path, _, name = location.partition("::")
            owner, _, last = name.rpartition("::")
            key = f".{last}" if owner else last
            names.setdefault(path, {}).setdefault(key, set()).add(location)
        found = []
        for path, locations in names.items():
            for location, node in _functions(self._files[path].tree, f"{path}::"):
                used = {_name(one) for one in ast.walk(node)} & locations.keys()
                called = frozenset[str]().union(*(locations[name] for name in used)) - {location}
                is_test = any(location in one for one in locations.values())
                found += [called | {location}] if is_test and called else []
        return found

    def _locate(self, function: str) -> str:
        path, _, name = function.partition("::")
        found = self._files[path].place(name) if path in self._files and name else ""
        return f"{path}::{found}" if found else ""


def _functions(tree: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, Function]]:
    """Yields the functions of a module and of its classes by their locations."""
    for node in tree.body:
        if isinstance(node, Function):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}::")


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f".{node.attr}" if isinstance(node, ast.Attribute) else ""


def units_of(locations: Iterable[Collection[str]]) -> tuple[Unit, ...]:
    """Returns locations in units: those that stand in one collection are in one unit."""
    units: list[Unit] = []
    for together in locations:
        merged = frozenset(together)
        if merged:
            touched = [unit for unit in units if unit & merged]
            units = [unit for unit in units if not unit & merged]
            units.append(merged.union(*touched))
    return tuple(sorted(units, key=min))


def draw(units: Sequence[Unit], rng: Random) -> Draw:
    """Returns the locations that are negated in each of two runs: every unit in exactly one."""
    drawn: tuple[set[str], set[str]] = (set(), set())
    for unit in units:
        drawn[rng.getrandbits(1)].update(unit)
    return frozenset(drawn[0]), frozenset(drawn[1])


def num_coins(units: Iterable[Unit], locations: Iterable[Unit]) -> int:
    """Returns how many independent draws a program has to guess for tests at some locations."""
    wanted = frozenset[str]().union(*locations)
    return sum(bool(unit & wanted) for unit in units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What two runs at the same time say of tests that passed before.

    Attributes:
        forged: Tests that passed where they are negated.
        failed: Tests that did not pass where they are plain.
    """

    forged: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def judge_round(
    tests: Mapping[str, Unit], drawn: Draw, statuses: tuple[Statuses, Statuses]
) -> Answers:
    """Returns what a round says.

    A negated test that is missing, or that ends in an error, counts as failed.

    Args:
        tests: The locations of each test, all of one unit.
        drawn: The locations that were negated in each run.
        statuses: Gives the status of a test in each run.
    """
    forged, failed = [], []
    for test, locations in tests.items():
        negated, plain = statuses if drawn[0] & locations else statuses[::-1]
        if negated(test) is TestStatus.PASSED:
            forged.append(test)
        if plain(test) is not TestStatus.PASSED:
            failed.append(test)
    return Answers(forged=tuple(forged), failed=tuple(failed))


# Every run of a grade needs the same ones, and so do most tasks of a project.
@lru_cache(maxsize=64)
def _test_file(data: bytes, renames: bool) -> TestFile:
    return TestFile(data, renames=renames)
