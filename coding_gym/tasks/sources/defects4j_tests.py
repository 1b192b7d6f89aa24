"""What Defects4J says of a bug, and which of its project's tests are expected to pass."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from coding_gym.tasks.sources.defects4j_statement import Failure
from coding_gym.tasks.sources.defects4j_unreliable import is_unreliable
from coding_gym.tasks.sources.file_text import read_text
from coding_gym.tasks.sources.java_reach import JavaReach, libraries
from coding_gym.tasks.sources.junit_source import JUnitClass, junit_tests

_TEST = re.compile(r"^---\s+([\w.$]+)(?:::(\w+))?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A line of ``active-bugs.csv``.

    Attributes:
        folder: The project's metadata.
        project: The name of its repository.
        number: The bug's.
        buggy: The commit before the fix.
        fixed: The commit with the fix.
        report: The issue's name in the project's tracker.
        url: Where the issue is.
        source_root: The folder of sources.
        test_root: The folder of tests.
    """

    folder: Path
    project: str
    number: str
    buggy: str
    fixed: str
    report: str
    url: str
    source_root: str
    test_root: str


class BugTests:
    """The expected tests of a bug.

    Attributes:
        broken: Those that the bug breaks.
        working: The tests of the classes that Defects4J calls relevant, as far as the sources tell.
        left_out: What would be among these, but is known to fail, or to depend on the machine.
        classes: The classes that the bug breaks tests of.
        libraries: The jars that these need; None where one of them is not known.
    """

    def __init__(self, bug: Bug, files: dict[str, str], failures: tuple[Failure, ...]) -> None:
        self._files, self._root = files, bug.test_root
        self._classes: dict[str, JUnitClass | None] = {}
        triggers = tuple(dict.fromkeys(failure.test_id for failure in failures))
        self.classes = tuple(dict.fromkeys(failure.class_name for failure in failures))
        reach = JavaReach(files, (bug.source_root, bug.test_root))
        foreign = {name: reach.foreign(self.path(name)) for name in self.classes}
        self.libraries = libraries(one for imports in foreign.values() for one in imports)
        relevant = _lines(bug.folder / "relevant_tests" / bug.number)
        found = self._found(dict.fromkeys((*self.classes, *relevant)), reach)
        known = _known_failures(bug)
        every = tuple(dict.fromkeys((*triggers, *found)))
        unfit = {
            test
            for test in every
            if is_unreliable(bug.folder.name, test)
            or (test not in triggers and known & {test, test.partition("::")[0]})
        }
        self.broken = tuple(test for test in triggers if test not in unfit)
        self.working = tuple(test for test in found if test not in unfit.union(triggers))
        self.left_out = tuple(test for test in every if test in unfit)

    def _found(self, names: Iterable[str], reach: JavaReach) -> list[str]:
        """Returns the tests of those classes that can be built with what the broken ones need."""
        found = []
        for name in names:
            needed = libraries(reach.foreign(self.path(name)))
            if needed is None or not needed <= (self.libraries or frozenset()):
                continue
            methods = junit_tests(name.rpartition(".")[2], self._lineage(name))
            found += [f"{name}::{method}" for method in methods]
        return found

    def path(self, name: str) -> str:
        """Returns where a class is."""
        return f"{self._root}/{name.partition('$')[0].replace('.', '/')}.java"

    def source(self, name: str) -> str:
        """Returns the source of a class, with the hidden tests; "" where it is unknown."""
        return self._files.get(self.path(name), "")

    def _lineage(self, name: str) -> dict[str, JUnitClass]:
        """Returns a class and those test classes that it inherits from, by simple name."""
        found: dict[str, JUnitClass] = {}
        path: str | None = self.path(name)
        while path is not None and (one := self._parsed(path)) is not None:
            simple = one.name.rpartition(".")[2]
            if simple in found:
                break
            found[simple] = one
            near = f"{path.rpartition('/')[0]}/{one.parent}.java"
            far = (other for other in self._files if other.endswith(f"/{one.parent}.java"))
            path = near if near in self._files else next(far, None)
        return found

    def _parsed(self, path: str) -> JUnitClass | None:
        if path not in self._classes and path in self._files:
            self._classes[path] = JUnitClass.parse(self._files[path])
        return self._classes.get(path)


def files_below(files: Mapping[str, str], root: str) -> dict[str, str]:
    """Returns those of the files, text by path, that lie in a folder."""
    return {path: text for path, text in files.items() if path.startswith(f"{root}/")}


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]


def _known_failures(bug: Bug) -> frozenset[str]:
    """Returns tests and classes that Defects4J itself leaves out of a bug's suite."""
    found: set[str] = set()
    for path in (bug.folder / "failing_tests" / bug.fixed, bug.folder / "dependent_tests"):
        if path.is_file():
            for name, method in _TEST.findall(read_text(path)):
                found.add(f"{name}::{method}" if method else name)
    return frozenset(found)
