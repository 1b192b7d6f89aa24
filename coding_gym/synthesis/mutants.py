"""Broken programs: every bug that the operators can make, in an order that is always the same."""

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from coding_gym.arguments import unknown_name
from coding_gym.mutation.catalogue import BUG_KINDS, bugs
from coding_gym.mutation.sites import Change, Site, sites
from coding_gym.mutation.source import Edit, Source, apply_edits

COMBINATION = "combination"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change that makes a bug.

    Attributes:
        site: The statement that it changes.
        change: What changes.
    """

    site: Site
    change: Change

    @property
    def path(self) -> str:
        """The file."""
        return self.site.source.path

    @property
    def function(self) -> str:
        """Dotted name of the function or class around the change; "" for the module."""
        return self.site.scope.inner(self.site.node).name

    @property
    def lines(self) -> range:
        """The lines of the statement's header."""
        return self.site.lines


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broken program: one mutation, or several for a combination.

    Attributes:
        mutations: What is changed, in order of path and place.
    """

    mutations: tuple[Mutation, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of bugs, sorted."""
        return tuple(sorted(mutation.change.bug for mutation in self.mutations))

    @property
    def functions(self) -> tuple[tuple[str, str], ...]:
        """Path and name of each function that is changed, sorted, without repeats."""
        return tuple(sorted({(m.path, m.function) for m in self.mutations}))

    @property
    def sources(self) -> dict[str, str]:
        """The text of the files that it changes, as they are without it, by path."""
        return {mutation.path: mutation.site.source.text for mutation in self.mutations}

    @property
    def texts(self) -> dict[str, str]:
        """The text of the files that it changes, with the bug, by path."""
        edits: dict[str, list[Edit]] = {}
        for mutation in self.mutations:
            edits.setdefault(mutation.path, []).extend(mutation.change.edits)
        return {path: apply_edits(text, edits[path]) for path, text in self.sources.items()}


def check_operators(operators: Collection[str]) -> tuple[str, ...]:
    """Returns the kinds of bugs to make; all of them where none are given.

    Args:
        operators: Names of `BUG_KINDS`, and ``combination``.

    Raises:
        UnknownNameError: No kind has one of the names.
    """
    known = (*BUG_KINDS, COMBINATION)
    for name in operators:
        if name not in known:
            raise unknown_name("operator", name, known)
    return tuple(operators) or known


def find_mutations(
    source: Source, is_run: Callable[[range], bool], operators: Collection[str] = BUG_KINDS
) -> Iterator[Mutation]:
    """Yields what can be broken in one file, in the order of the file.

    Args:
        source: The file.
        is_run: Whether tests run any of the given lines.
        operators: The kinds of bugs to make.
    """
    for site in sites(source):
        if _is_code(site.node) and is_run(site.lines):
            for change in bugs(site):
                if change.bug in operators:
                    yield Mutation(site, change)


def _is_code(node: ast.AST) -> bool:
    """Whether tests of behaviour see a statement, not just type checkers or packagers."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" not in ast.unparse(node.test)
    if isinstance(node, ast.Assign) and isinstance(name := node.targets[0], ast.Name):
        return not (name.id.startswith("__") and name.id.endswith("__"))
    return not isinstance(node, ast.Assert)
