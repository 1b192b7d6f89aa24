"""Runners of a task's test command: they read its output, its report files or its exit code.

Code under test can print the same text as tests, so these runners detect fewer forgeries than the
pytest runner, which has a private channel. See ``docs/threat-model.md``.
"""

import re
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from time import monotonic

from coding_gym.calls import ExecResult
from coding_gym.errors import GradingError
from coding_gym.grade import TestStatus
from coding_gym.grading.formats.junit_xml import read_junit
from coding_gym.grading.report import TestRun
from coding_gym.grading.runners.patterns import named_patterns, started_paths, started_patterns
from coding_gym.patch import Patch
from coding_gym.program_output import last_line
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task, files_of_tests

FILE = "{file}"  # in a command: the path of a test file
_MAX_OUTPUT_BYTES = 16 << 20
_MAX_REPORTS = 1000
# A program in the search path or at an absolute path, not at a path in the tree.
_INSTALLED = re.compile(r"/[\w.+/-]+|[\w.+-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRunner:
    """Runs ``test_command`` and reads the statuses of the tests from its output.

    A command that contains ``{file}`` runs once for each file of expected tests; ids are then
    ``FILE::NAME``. A runner holds no state; one object serves all tasks and threads. Subclasses
    read other sources than the output.

    Attributes:
        name: The name in ``Task.runner``.
        names: Patterns of test files and of files that configure the run.
        parse: A function that returns the run in the output of a command.
        default_command: The default of ``test_command``; "" if tasks must have a command.
        is_by_file: Whether ids are ``FILE::NAME`` even without ``{file}``.
    """

    name: str
    names: tuple[str, ...] = ()
    parse: Callable[[str], TestRun] = lambda _: TestRun()
    default_command: str = ""
    is_by_file: bool = False
    records = False  # no checks: a failed assertion ends its test

    def _read(self, sandbox: Sandbox, task: Task, result: ExecResult) -> TestRun:
        """Returns the run of a command that was not killed, by default from its output."""
        return _with_exit_code(self.parse(result.output), result)

    def _prepare(self, sandbox: Sandbox, task: Task) -> None:
        """Prepares a run, for example by removing old reports; does nothing by default."""

    def _report_problem(self, task: Task) -> str:
        """Returns the problem of a task's ``test_report``, or ""."""
        return f"is not used by this runner, got {task.test_report!r}" if task.test_report else ""

    def problem(self, task: Task) -> str:
        """Returns the problem of a task that this runner cannot run, or ""."""
        command = self._command(task)
        if not command:
            return f"field 'test_command' is missing; runner {self.name!r} needs it"
        if problem := self._report_problem(task):
            return f"field 'test_report' {problem}"
        if self.is_by_file or FILE in command:
            invalid = [test for test in task.expected_tests if "::" not in test]
            return f"expected test {invalid[0]!r} is not FILE::NAME" if invalid else ""
        return ""

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns the test files that ids name, and the programs that the command starts."""
        programs = started_paths(self._command(task)) - Patch(task.gold_patch).paths
        return tuple(sorted(_test_files(task) | programs))

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns `selection.path_matcher` patterns of further test and configuration files."""
        return (*self.names, *started_patterns(self._command(task)))

    def negates(self, task: Task) -> bool:
        """Returns whether `function_ids` returns Python functions, so that tests can be negated."""
        return False

    def function_ids(self, task: Task, files: Mapping[str, bytes]) -> Mapping[str, tuple[str, ...]]:
        """Returns the test functions of expected tests, as ``FILE::CLASS::NAME``.

        Tests whose functions are not known are omitted; they cannot be negated.

        Args:
            task: The task.
            files: Content of the test files by path, after the hidden tests are applied.
        """
        return {}

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
        """Runs the command in a tree with the hidden tests and the patch.

        Args:
            sandbox: The sandbox that holds the tree.
            task: The task.
            paths: The test files, from `files`. A command with ``{file}`` runs for each of these
                files that expected tests name, even if the file is missing.
            timeout_s: Time limit in seconds, after which the run is killed.
            only: Has no effect: the command runs all tests.
            num_checks: Has no effect: these runners have no checks.

        Raises:
            GradingError: The program at the beginning of the command is missing.
            SandboxError: The sandbox died.
        """
        self._prepare(sandbox, task)
        _check_program(sandbox, task, self._command(task))
        total, result = TestRun(ended=True), ExecResult(0, "")
        deadline = monotonic() + timeout_s
        for command, prefix in self._commands(task, paths):
            result = sandbox.run(
                command,
                timeout_s=max(deadline - monotonic(), 0.1),
                max_output_bytes=_MAX_OUTPUT_BYTES,
            )
            if result.timed_out or result.out_of_memory:
                break
            run = self._read(sandbox, task, result)
            if not run.statuses:
                message = last_line(result.output, f"exit code {result.exit_code}")
                tests = [test for test in task.expected_tests if test.startswith(prefix)]
                total.messages |= dict.fromkeys(tests, message)
            for test, status in run.statuses.items():
                total.add(prefix + test, status, run.messages.get(test, ""))
            total.ended &= run.ended
            total.is_lost |= run.is_lost
        return total.finish(result)

    def _command(self, task: Task) -> str:
        return task.test_command.strip() or self.default_command

    def _commands(self, task: Task, paths: tuple[str, ...]) -> list[tuple[str, str]]:
        """Returns the commands to run, each with the prefix of the ids of its tests."""
        command = self._command(task)
        if FILE not in command:
            return [(command, "")]
        paths = tuple(path for path in paths if path in _test_files(task))
        return [(command.replace(FILE, shlex.quote(path)), f"{path}::") for path in paths]


def _test_files(task: Task) -> set[str]:
    """Returns the files that the ids of the expected tests name."""
    paths = files_of_tests(test for test in task.expected_tests if "::" in test)
    return {path for path in paths if "." in path.rpartition("/")[2] and path.isprintable()}


def _check_program(sandbox: Sandbox, task: Task, command: str) -> None:
    """Checks that the command's program exists, before the code under test runs.

    Raises:
        GradingError: The program is missing. `TestTree.run` then tries the base and the gold patch.
    """
    try:
        words = shlex.split(command)
    except ValueError:  # an unclosed quotation mark, as in a here document
        words = command.split()
    program = next((word for word in words if "=" not in word), "")
    if not _INSTALLED.fullmatch(program):
        return
    if not sandbox.run(f"command -v {program} >/dev/null").ok:
        raise GradingError(
            f"task {task.task_id}: program {program!r} of field 'test_command' is not installed "
            "in the sandbox; remedy: install the program there"
        )


class CommandRunner(OutputRunner):
    """Runs the expected tests, each of which is a shell command, such as ``make test``.

    A test passes if its command exits with 0. The commands run one after another in one sandbox.

    Prefer a runner that reads results by name. With this runner, code under test passes a test if
    it exits with 0. A patch can also change scripts that only other scripts name, and files that a
    command names only by a folder or a glob, unless the files have names of tests.
    """

    def problem(self, task: Task) -> str:
        """Returns the problem of a task that this runner cannot run, or ""."""
        if task.test_command:
            return f"field 'test_command' is not used by this runner, got {task.test_command!r}"
        invalid = [test for test in task.expected_tests if not test.strip() or "\0" in test]
        return f"expected test {invalid[0]!r} is not a shell command" if invalid else ""

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns an empty tuple, because ids are commands and do not name test files."""
        return ()

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns patterns of test files, of test folders, and of files that the commands name."""
        return (*named_patterns(task.expected_tests), *self.names)

    def _commands(self, task: Task, paths: tuple[str, ...]) -> list[tuple[str, str]]:
        return [(test, test) for test in task.expected_tests]

    def _read(self, sandbox: Sandbox, task: Task, result: ExecResult) -> TestRun:
        """Returns a run of one test, with the id "", whose status follows from the exit code."""
        run = TestRun(ended=True)
        if result.exit_code:
            message = f"exit code {result.exit_code}: {last_line(result.output, 'no output')}"
            run.add("", TestStatus.FAILED, message)
        else:
            run.add("", TestStatus.PASSED)
        return run


class JunitRunner(OutputRunner):
    """Reads the JUnit XML files that ``test_report`` names by glob patterns."""

    def _report_problem(self, task: Task) -> str:
        """Returns the problem of the patterns in ``test_report``, or ""."""
        patterns = task.test_report.split()
        if not patterns:
            return "is missing; it must name the JUnit XML files, such as 'build/*.xml'"
        paths = [p for p in patterns if p.startswith("/") or ".." in p.split("/")]
        return f"must name files in the workspace, got {paths[0]!r}" if paths else ""

    def _prepare(self, sandbox: Sandbox, task: Task) -> None:
        """Removes the files that match ``test_report``."""
        sandbox.run(f"{_listing(task)} | xargs -0 -r rm -rf --")

    def _read(self, sandbox: Sandbox, task: Task, result: ExecResult) -> TestRun:
        """Returns the run in the files; an incomplete run if a file cannot be read."""
        listed = sandbox.run(_listing(task)).output.split("\0")
        paths = sorted(path for path in listed if path)
        if len(paths) > _MAX_REPORTS:
            return TestRun()
        reports: list[bytes] = []
        for path in paths:
            max_bytes = _MAX_OUTPUT_BYTES - sum(map(len, reports))
            try:
                reports.append(sandbox.read_file(path, max_bytes=max_bytes))
            except OSError:  # a folder, a pipe or a file that is too large
                return TestRun()
        return _with_exit_code(read_junit(reports), result)


def _with_exit_code(run: TestRun, result: ExecResult) -> TestRun:
    """Marks a run as incomplete if no test failed but the exit code is not 0.

    In this case code outside of the tests failed, or the code under test ended the program.
    """
    failures = {*run.statuses.values()} - {TestStatus.PASSED, TestStatus.SKIPPED}
    if result.exit_code and run.statuses and not failures:
        run.ended = False
    return run


def _listing(task: Task) -> str:
    patterns = " ".join(_glob(pattern) for pattern in task.test_report.split())
    return f"shopt -s globstar nullglob; printf '%s\\0' {patterns}"


def _glob(pattern: str) -> str:
    """Quotes a pattern, except for its wildcards."""
    return "".join(char if char in "*?[]-" else shlex.quote(char) for char in pattern)
