"""The pytest runner, which reports results from the test process over a private channel."""

from collections.abc import Collection, Iterable, Mapping

from coding_gym.grading.pytest_config import CONFIG_FILES
from coding_gym.grading.report import TestRun
from coding_gym.grading.selection import TEST_FOLDER_NAMES
from coding_gym.grading.supervision import run_tests
from coding_gym.patch import Patch
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task, files_of_tests

_CONFIG_NAMES = (*CONFIG_FILES, "conftest.py", ".coveragerc")


class PytestRunner:
    """Runs ``python -m pytest`` on the files of the expected tests, by node ids."""

    name = "pytest"
    records = True

    def problem(self, task: Task) -> str:
        """Returns the problem if pytest cannot select a test or if patches can edit it; else ""."""
        hidden_paths = Patch(task.test_patch).paths
        for test in task.expected_tests:
            path, colons, name = test.partition("::")
            if not colons:
                return f"expected test {test!r} is not a pytest node id (FILE::TEST)"
            if path.startswith("/"):
                return f"expected test {test!r} must name its file relative to the tree"
            if "[" in path:
                return f"expected test {test!r} names {path!r}; in ids '[' begins parameters"
            is_doctest = "." in name.partition("[")[0].partition("::")[0]
            is_source = path.endswith(".py") and TEST_FOLDER_NAMES.isdisjoint(path.split("/"))
            if is_doctest and is_source and path not in hidden_paths:
                return f"expected test {test!r} is a doctest in a source file, which patches edit"
        return ""

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns the test files that ids name."""
        return tuple(sorted(files_of_tests(task.expected_tests)))

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns patterns of the configuration and ``conftest.py`` files above expected tests."""
        folders = {""}
        for path in self.files(task):
            parts = path.split("/")
            folders.update("/".join(parts[:depth]) + "/" for depth in range(1, len(parts)))
        return tuple(f"./{folder}{name}" for folder in sorted(folders) for name in _CONFIG_NAMES)

    def negates(self, task: Task) -> bool:
        """Returns whether `function_ids` returns Python functions, so that tests can be negated."""
        return True

    def function_ids(self, task: Task, files: Mapping[str, bytes]) -> Mapping[str, tuple[str, ...]]:
        """Returns the node ids without parameters, by expected test."""
        return functions_of_tests(task.expected_tests)

    def run(
        self,
        sandbox: Sandbox,
        task: Task,
        paths: tuple[str, ...],
        *,
        timeout_s: float,
        only: Collection[str] = (),
        num_checks: int = 0,
    ) -> TestRun:
        """Runs the tests of some files, with `run_tests`.

        Args:
            sandbox: The sandbox that holds the tree.
            task: The task.
            paths: The test files, from `files`; missing files are skipped.
            timeout_s: Time limit in seconds, after which the run is killed.
            only: Ids of the tests to run, with all their parameters; all by default.
            num_checks: The number of checks that record their outcomes.
        """
        function_ids = {test.partition("[")[0] for test in only} or None
        if only:
            selected_paths = files_of_tests(only)
            paths = tuple(path for path in paths if path in selected_paths)
        return run_tests(
            sandbox,
            paths,
            function_ids,
            has_own_pytest=task.has_own_pytest,
            timeout_s=timeout_s,
            num_checks=num_checks,
        )


def functions_of_tests(tests: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Returns the node id without parameters of each test, by the test's id."""
    return {test: (test.partition("[")[0],) for test in tests}
