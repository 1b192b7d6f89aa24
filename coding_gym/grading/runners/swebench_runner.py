"""SWE-bench's way: a row's test command, and its log read as SWE-bench reads it."""

from collections.abc import Mapping

from coding_gym.arguments import unknown_name
from coding_gym.errors import UnknownNameError
from coding_gym.grading.formats.swebench import FORMAT_BY_REPO, FORMATS, PYTEST_FORMATS, read_log
from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.command_words import started_patterns
from coding_gym.grading.runners.known_tests import ANY
from coding_gym.grading.runners.output_runner import OutputRunner
from coding_gym.grading.runners.unittest_ids import UnittestId, methods
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

# Where Django keeps its tests.
_DJANGO_ROOTS = ("tests", "")


class SweBenchRunner:
    """Runs a row's test command and reads its log as SWE-bench does.

    ``test_report`` names the format; without it, it is that of the project in SWE-bench.
    """

    name = "swebench"

    def problem(self, task: Task) -> str:
        """Returns what is wrong with the command or the format, or ""."""
        try:
            return _swebench(task).problem(task)
        except UnknownNameError as error:
            return f"field 'test_report': {error}"

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns the files that the ids name, and the command's own programs."""
        found = {*_swebench(task).files(task)}
        if _format(task) == "django":
            parsed = filter(None, map(UnittestId.parse, task.expected_tests))
            found.update(path for one in parsed for path in one.paths(_DJANGO_ROOTS))
        if _format(task) == "sympy":
            found.update(test.partition(":")[0] for test in task.expected_tests if ":" in test)
        return tuple(sorted(found))

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns those of every language; a format is of several, and a log of any."""
        return (*ANY, *started_patterns(task.test_command))

    def functions(self, task: Task, files: Mapping[str, bytes]) -> Mapping[str, tuple[str, ...]]:
        """Returns the functions that ids name, in the formats of Python's test runners."""
        name = _format(task)
        if name in PYTEST_FORMATS:
            return {test: (test.partition("[")[0],) for test in task.expected_tests}
        if name == "sympy":
            return {test: (test.replace(":", "::", 1),) for test in task.expected_tests}
        if name == "django":
            return methods(task.expected_tests, files, _DJANGO_ROOTS)
        return {}

    def run(
        self, sandbox: Sandbox, task: Task, paths: tuple[str, ...], *, timeout_s: float
    ) -> RunReport | None:
        """Runs the command.

        Raises:
            GradingError: The program that the command begins with is missing.
        """
        return _swebench(task).run(sandbox, task, paths, timeout_s=timeout_s)


def _format(task: Task) -> str:
    return task.test_report.strip() or FORMAT_BY_REPO.get(task.repo.lower(), "")


def _swebench(task: Task) -> OutputRunner:
    name = _format(task)
    if name not in FORMATS:
        raise unknown_name("log format", name, FORMATS)
    return OutputRunner(
        name="swebench",
        read=lambda _sandbox, _task, run: read_log(run.output, name),
        report_problem=lambda _: "",
    )
