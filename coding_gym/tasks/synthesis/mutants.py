"""Every way in which the operators can break a file, in an order that is always the same."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coding_gym.errors import MissingDependencyError

if TYPE_CHECKING:
    from coding_gym.tasks.synthesis.source import Edit


@dataclass(frozen=True, slots=True)
class Site:
    """One change of one place.

    Attributes:
        operator: Name of the operator.
        path: The file.
        function: Dotted name of the function or class around the place; "" for the module.
        first_line: Where the statement around it begins, counted from 1.
        last_line: Where that statement, or its head where it has a body, ends.
        edit: What changes.
    """

    operator: str
    path: str
    function: str
    first_line: int
    last_line: int
    edit: "Edit"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broken program: one site, or several for a combination.

    Attributes:
        sites: What is changed, in order of path and place.
    """

    sites: tuple[Site, ...]

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the operators, sorted."""
        return tuple(sorted(site.operator for site in self.sites))

    @property
    def functions(self) -> tuple[tuple[str, str], ...]:
        """Path and name of each function that is changed, sorted, without repeats."""
        return tuple(sorted({(site.path, site.function) for site in self.sites}))

    def files(self, sources: Mapping[str, bytes]) -> dict[str, bytes]:
        """Returns the content of the files that it changes.

        Args:
            sources: Content of the files before, by path.
        """
        from coding_gym.tasks.synthesis.source import apply_edits

        edits: dict[str, list[Edit]] = {}
        for site in self.sites:
            edits.setdefault(site.path, []).append(site.edit)
        return {path: apply_edits(sources[path], found) for path, found in edits.items()}


def find_sites(
    path: str, data: bytes, is_run: Callable[[int, int], bool], operators: Collection[str] = ()
) -> Iterator[Site]:
    """Yields what can be broken in one file, in the order of the file.

    Args:
        path: Where it is in the tree.
        data: Its content. A file that cannot be parsed has no sites.
        is_run: Whether tests run any of the lines from the first to the last given.
        operators: Names of the operators to use; all of them where there are none.

    Raises:
        MissingDependencyError: libcst is not installed.
    """
    try:
        import libcst
    except ImportError:
        raise MissingDependencyError(
            "making tasks from a program needs libcst; run: pip install 'coding-gym[synthesis]'"
        ) from None
    from coding_gym.tasks.synthesis.source import SourceFile
    from coding_gym.tasks.synthesis.walking import walk

    try:
        source = SourceFile(path, data)
    except (libcst.ParserSyntaxError, ValueError):
        return
    yield from walk(source, is_run, operators)
