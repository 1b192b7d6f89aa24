"""Assembles a task from a bug that tests detect: hidden tests, issue and expected tests."""

import contextlib
import hashlib
from dataclasses import replace

from coding_gym.errors import InvalidTaskError
from coding_gym.patch import Patch
from coding_gym.synthesis.coverage_report import CoverageReport
from coding_gym.synthesis.hiding import hide
from coding_gym.synthesis.mutants import Mutant
from coding_gym.synthesis.project import Project
from coding_gym.synthesis.statement import find_symptoms, write_statement
from coding_gym.synthesis.suite import SuiteRun
from coding_gym.task import FolderTree, Task

# A bug that breaks a larger share of the test functions is unrealistic, and leaves too few visible
# tests. A bug that breaks up to three functions is always accepted.
_MAX_HIDDEN_SHARE = 0.3
_MIN_HIDDEN = 3
# A bug is trivial if all its failures are of these kinds: a linter would find the bug.
_TRIVIAL_KINDS = {"NameError", "UnboundLocalError", "SyntaxError", "ImportError"}
_MANY_FAILING, _FEW_FAILING = 8, 2


class Assembler:
    """Makes tasks from the bugs of one project.

    Args:
        project: The project.
        coverage: The coverage of the project's tests.
        shows_failing: Whether half of the failing test functions stay visible. If so, a bug that
            only one function detects makes no task.
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
        self._keys: set[tuple[object, ...]] = set()
        self._num_functions = len({(test.path, test.line) for test in coverage.tests})

    def task(self, mutant: Mutant, run: SuiteRun | None) -> Task:
        """Returns the task of a mutant, made from a run of the tests that can detect its bug.

        Raises:
            InvalidTaskError: The mutant makes no task; the message has the reason.
        """
        if run is None:
            raise InvalidTaskError("the program hangs, ends its process, or has unstable tests")
        locations = self._failing_functions(mutant, run)
        if self._shows_failing:
            locations = set(sorted(locations)[1::2])
        visible_texts = hide(self._texts, locations)
        symptoms = find_symptoms(run.observation.failures)
        if not visible_texts:
            raise InvalidTaskError("too few failing test functions can be removed from their files")
        if not symptoms:
            raise InvalidTaskError("the failures of the tests name no function of the project")
        gold = Patch.between({mutant.path: mutant.text}, {mutant.path: mutant.source}).text
        texts = {path: self._texts[path] for path in visible_texts}
        tests = Patch.between(visible_texts, texts).text
        digest = hashlib.sha256((gold + tests).encode("utf-8", "surrogateescape")).hexdigest()
        failed_tests = set(run.failed)
        return replace(
            self._unbroken,
            task_id=f"{self._project.name}__{mutant.change.bug}-{digest[:10]}",
            tree=FolderTree(str(self._project.folder), gold + tests),
            problem_statement=write_statement(symptoms, run.failed),
            gold_patch=gold,
            test_patch=tests,
            fail_to_pass=run.failed,
            pass_to_pass=tuple(test for test in self._coverage.trusted if test not in failed_tests),
            excluded_tests=self._coverage.untrusted,
            difficulty=_difficulty(len(failed_tests)),
        )

    def _failing_functions(self, mutant: Mutant, run: SuiteRun) -> set[tuple[str, int]]:
        """Returns the path and line of each failing test function; raises the errors of `task`."""
        if run.collect_error:
            raise InvalidTaskError("a test file cannot be imported")
        if not run.failed:
            raise InvalidTaskError("no test detects the bug")
        key = (mutant.path, mutant.function, tuple(sorted(run.failed)))
        if key in self._keys:
            raise InvalidTaskError("another bug of the same function makes the same tests fail")
        self._keys.add(key)
        if not {failure.kind for failure in run.observation.failures.values()} - _TRIVIAL_KINDS:
            raise InvalidTaskError("the tests fail only with errors of names, imports or syntax")
        tests = [self._coverage.by_id[test] for test in run.failed]
        locations = {(test.path, test.line) for test in tests}
        if len(locations) > max(_MIN_HIDDEN, _MAX_HIDDEN_SHARE * self._num_functions):
            raise InvalidTaskError("the bug breaks too many tests")
        return locations


def _difficulty(num_failing: int) -> str:
    """Returns the difficulty label of a bug; a bug that fewer tests detect is harder."""
    if num_failing > _MANY_FAILING:
        return "easy"
    return "medium" if num_failing > _FEW_FAILING else "hard"
