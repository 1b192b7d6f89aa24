"""pytest, with a reporter of ours in its process."""

from collections.abc import Collection, Mapping

from coding_gym.grading.pytest_config import CONFIG_FILES
from coding_gym.grading.report import RunReport
from coding_gym.grading.supervision import TestRunner
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

_READ = (*CONFIG_FILES, "conftest.py", ".coveragerc")


class PytestRunner:
    """Runs ``python -m pytest`` on the files of the expected tests, by node ids."""

    name = "pytest"

    def problem(self, task: Task) -> str:
        """Returns the first expected test that is no node id, or ""."""
        wrong = [test for test in task.expected_tests if "::" not in test]
        return f"expected test {wrong[0]!r} is not a pytest node id (FILE::TEST)" if wrong else ""

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns what stands before the first ``::`` of the ids."""
        return tuple(sorted({test.partition("::")[0] for test in task.expected_tests}))

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns what pytest reads: configuration and ``conftest.py`` above expected tests.

        It is given the files of the expected tests, and collects no others.
        """
        folders = {""}
        for path in self.files(task):
            parts = path.split("/")
            folders.update("/".join(parts[:depth]) + "/" for depth in range(1, len(parts)))
        return tuple(f"./{folder}{name}" for folder in sorted(folders) for name in _READ)

    def functions(
        self,
        task: Task,
        files: Mapping[str, bytes],  # noqa: ARG002 — the contract
    ) -> Mapping[str, tuple[str, ...]]:
        """Returns the node ids without parameters."""
        return {test: (test.partition("[")[0],) for test in task.expected_tests}

    def run(
        self,
        sandbox: Sandbox,
        task: Task,
        paths: tuple[str, ...],
        *,
        timeout_s: float,
        tests: Collection[str] | None = None,
        num_checks: int = 0,
    ) -> RunReport | None:
        """Runs some of the tests, whose assertions record their outcomes; see `TestRunner.run`."""
        runner = TestRunner(sandbox, has_own_pytest=task.has_own_pytest)
        return runner.run(paths, tests, timeout_s=timeout_s, num_checks=num_checks)
