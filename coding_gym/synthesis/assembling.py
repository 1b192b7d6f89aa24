"""Assembles a task from a detected bug: hidden tests, issue, and tests that must pass."""

import contextlib
import hashlib
from dataclasses import dataclass, replace

from coding_gym.patch import Patch
from coding_gym.synthesis.coverage_report import CoverageReport
from coding_gym.synthesis.hiding import hide
from coding_gym.synthesis.mutants import Mutant
from coding_gym.synthesis.project import Project
from coding_gym.synthesis.statement import find_symptoms, write_statement
from coding_gym.synthesis.suite import SuiteRun
from coding_gym.task import FolderTree, Task

# A bug that breaks a larger share of the test functions is unrealistic, and leaves too few tests
# visible. Three functions are always allowed.
_MAX_HIDDEN_SHARE = 0.3
_MIN_HIDDEN = 3
# Bugs that raise only these are trivial: a linter finds them.
_TRIVIAL = {"NameError", "UnboundLocalError", "SyntaxError", "ImportError"}
_MANY_FAILING, _FEW_FAILING = 8, 2


@dataclass(frozen=True, slots=True)
class DetectedBug:
    """A mutant that tests detect.

    Attributes:
        mutant: The changed program.
        run: Its run of the tests.
    """

    mutant: Mutant
    run: SuiteRun

    @property
    def duplicate_key(self) -> tuple[object, ...]:
        """The file, function and failing tests; bugs with the same key are duplicates."""
        return self.mutant.path, self.mutant.function, tuple(sorted(self.run.failed))


class Assembler:
    """Makes tasks from the bugs of one project.

    Args:
        project: The project.
        coverage: The coverage of its tests.
        shows_failing: Whether half of the failing test functions stay visible. Then a bug that only
            one function detects makes no task.
    """

    def __init__(
        self, project: Project, coverage: CoverageReport, *, shows_failing: bool = False
    ) -> None:
        self._coverage, self._shows_failing = coverage, shows_failing
        self._unbroken = project.task()
        self._project = project
        self._texts: dict[str, str] = {}
        for path, data in project.contents(test.path for test in coverage.tests).items():
            with contextlib.suppress(UnicodeDecodeError):
                self._texts[path] = data.decode("utf-8")
        self._num_functions = len({(test.path, test.line) for test in coverage.tests})

    def task(self, bug: DetectedBug) -> Task | None:
        """Returns the task; None for a trivial bug, no symptom, or tests that cannot be hidden."""
        run, mutant = bug.run, bug.mutant
        if not {failure.kind for failure in run.failures.values()} - _TRIVIAL:
            return None
        locations = {self._location(test) for test in run.failed}
        if len(locations) > max(_MIN_HIDDEN, _MAX_HIDDEN_SHARE * self._num_functions):
            return None
        if self._shows_failing:
            locations = set(sorted(locations)[1::2])
        visible = hide(self._texts, locations)
        symptoms = find_symptoms(run.failures)
        if not visible or not symptoms:
            return None
        gold = Patch.between({mutant.path: mutant.text}, {mutant.path: mutant.source}).text
        tests = Patch.between(visible, {path: self._texts[path] for path in visible}).text
        digest = hashlib.sha256((gold + tests).encode("utf-8", "surrogateescape")).hexdigest()
        failed = set(run.failed)
        return replace(
            self._unbroken,
            task_id=f"{self._project.name}__{mutant.change.bug}-{digest[:10]}",
            tree=FolderTree(str(self._project.folder), gold + tests),
            problem_statement=write_statement(symptoms, run.failed),
            gold_patch=gold,
            test_patch=tests,
            fail_to_pass=run.failed,
            pass_to_pass=tuple(test for test in self._coverage.trusted if test not in failed),
            excluded_tests=self._coverage.untrusted,
            difficulty=_difficulty(len(failed)),
        )

    def _location(self, test_id: str) -> tuple[str, int]:
        test = self._coverage.by_id[test_id]
        return test.path, test.line


def _difficulty(num_failing: int) -> str:
    """Returns the label of a bug: bugs that fewer tests detect are harder."""
    if num_failing > _MANY_FAILING:
        return "easy"
    return "medium" if num_failing > _FEW_FAILING else "hard"
