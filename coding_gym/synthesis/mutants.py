"""Finds mutants, programs with one inserted bug each, in a reproducible order."""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from coding_gym.arguments import unknown_name
from coding_gym.mutation.catalogue import BUG_KINDS, bugs
from coding_gym.mutation.sites import Change, Site, sites, unit_around
from coding_gym.mutation.source import Source
from coding_gym.source_text import Edit, apply_edits


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one bug.

    Attributes:
        site: The changed statement.
        change: The change that makes the bug.
    """

    site: Site
    change: Change

    @property
    def name(self) -> str:
        """Path, line and kind of the bug, for messages."""
        return f"{self.path}:{self.lines.start} {self.change.bug}"

    @property
    def path(self) -> str:
        """The path of the changed file, relative to the tree."""
        return self.site.source.path

    @property
    def function(self) -> str:
        """Dotted name of the function or class around the change; "" for the module."""
        return self.site.scope.inner(self.site.node).name

    @property
    def lines(self) -> range:
        """The lines of the header of the changed statement."""
        return self.site.lines

    @property
    def source(self) -> str:
        """The text of the file without the bug."""
        return self.site.source.text

    @property
    def text(self) -> str:
        """The text of the file with the bug."""
        return apply_edits(self.source, self.change.edits)


def check_kinds(kinds: Collection[str]) -> tuple[str, ...]:
    """Returns the kinds of bugs to make: ``kinds``, or all kinds if ``kinds`` is empty.

    Args:
        kinds: Names of `BUG_KINDS`.

    Raises:
        UnknownNameError: A name is not in `BUG_KINDS`.
    """
    for name in kinds:
        if name not in BUG_KINDS:
            raise unknown_name("kind of bug", name, BUG_KINDS)
    return tuple(kinds) or BUG_KINDS


def find_mutants(
    source: Source, is_run: Callable[[range], bool], kinds: Collection[str] = BUG_KINDS
) -> Iterator[Mutant]:
    """Yields the mutants of one file, in the order of the file.

    Args:
        source: The file.
        is_run: Returns whether tests run any line of a range.
        kinds: The kinds of bugs to make.
    """
    for site in sites(source):
        if _is_code(site.node) and is_run(site.lines):
            for change in bugs(site):
                if change.bug in kinds:
                    yield Mutant(site, change)


def in_turn(mutants: Iterable[Mutant], rng: Random) -> Iterator[Mutant]:
    """Yields mutants without duplicates, round-robin over the kinds of bugs.

    Without round-robin, the kinds with the most sites would make most of the tasks.
    """
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_kind.setdefault(mutant.change.bug, []).append(mutant)
    for group in by_kind.values():
        rng.shuffle(group)
    kinds = sorted(by_kind)
    seen_units: set[tuple[str, int, str]] = set()
    while kinds:
        rng.shuffle(kinds)
        for kind in kinds:
            mutant = by_kind[kind].pop()
            unit = _unit(mutant.site, mutant.change.edits)
            if unit is None or unit == _unit(mutant.site) or (mutant.path, *unit) in seen_units:
                continue  # invalid Python, or an unchanged or repeated syntax tree
            seen_units.add((mutant.path, *unit))
            yield mutant
        kinds = sorted(kind for kind in kinds if by_kind[kind])


def _is_code(node: ast.AST) -> bool:
    """Returns whether a statement is code: no TYPE_CHECKING block, dunder name or assertion."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" not in ast.unparse(node.test)
    if isinstance(node, ast.Assign) and isinstance(name := node.targets[0], ast.Name):
        return not (name.id.startswith("__") and name.id.endswith("__"))
    return not isinstance(node, ast.Assert)


def _unit(site: Site, edits: Sequence[Edit] = ()) -> tuple[int, str] | None:
    """Returns offset and syntax tree of the unit around a statement; None for invalid Python."""
    unit = unit_around(site, edits)
    return None if unit is None else (unit[0], ast.dump(unit[2]))
