"""The runner of SWE-bench rows: runs their test command and reads its log as SWE-bench does."""

from collections.abc import Mapping

from coding_gym.arguments import unknown_name
from coding_gym.calls import ExecResult
from coding_gym.grading.formats.swebench import FORMAT_BY_REPO, FORMATS, PYTEST_FORMATS, read_log
from coding_gym.grading.report import TestRun
from coding_gym.grading.runners.output_runner import OutputRunner
from coding_gym.grading.runners.pytest_runner import functions_of_tests
from coding_gym.grading.runners.unittest_ids import methods, parse_id
from coding_gym.patch import Patch
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task


class SweBenchRunner(OutputRunner):
    """Runs a row's test command and reads its log as SWE-bench does.

    ``test_report`` names the log format; the default is the format of the project in SWE-bench. A
    format can serve several languages, so the runner protects test files of all languages.
    """

    def _report_problem(self, task: Task) -> str:
        """Returns the problem of the log format that a task names, or ""."""
        name = _format(task)
        return "" if name in FORMATS else f"is wrong: {unknown_name('log format', name, FORMATS)}"

    def _read(self, sandbox: Sandbox, task: Task, result: ExecResult) -> TestRun:
        """Returns the statuses in the output; ignores the exit code."""
        return TestRun(statuses=read_log(result.output, _format(task)), ended=True)

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns the test files, and the programs that the command starts."""
        paths = {*super().files(task)}
        if _format(task) == "django":
            for files, _ in filter(None, map(parse_id, task.expected_tests)):
                paths.update(files)
        if _format(task) == "sympy":  # ids are names of functions in the files of the test patch
            paths.update(path for path in Patch(task.test_patch).paths if path.endswith(".py"))
        return tuple(sorted(paths))

    def negates(self, task: Task) -> bool:
        """Returns whether a Python test runner writes the log format."""
        return _format(task) in {*PYTEST_FORMATS, "sympy", "django"}

    def function_ids(self, task: Task, files: Mapping[str, bytes]) -> Mapping[str, tuple[str, ...]]:
        """Returns the functions that ids name, in formats of Python's test runners."""
        name = _format(task)
        if name in PYTEST_FORMATS:
            return functions_of_tests(task.expected_tests)
        return methods(task.expected_tests, files) if name in {"sympy", "django"} else {}


def _format(task: Task) -> str:
    return task.test_report.strip() or FORMAT_BY_REPO.get(task.repo.lower(), "")
