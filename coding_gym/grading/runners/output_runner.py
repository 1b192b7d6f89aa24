"""Runners of a task's own commands: they read its output, its report files or its exit code.

Code under test can print the same text as tests, so these runners detect less than the pytest
runner, which has a private channel: see ``docs/threat-model.md``.
"""

import re
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

from coding_gym.calls import ExecResult
from coding_gym.errors import GradingError, last_line
from coding_gym.grade import TestStatus
from coding_gym.grading.formats.cargo import read_cargo
from coding_gym.grading.formats.go_json import read_go
from coding_gym.grading.formats.junit_xml import read_junit
from coding_gym.grading.formats.tap import read_tap
from coding_gym.grading.report import Run
from coding_gym.grading.runners.patterns import (
    ANY,
    CARGO,
    GO,
    TEST_FOLDERS,
    named_patterns,
    started_patterns,
)
from coding_gym.patch import Patch
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

FILE = "{file}"
Read = Callable[[Sandbox, Task, ExecResult], Run]
_MAX_OUTPUT_BYTES = 64 << 20
_MAX_REPORTS = 1000
_PLAIN_WORD = re.compile(r"[\w.+/-]+")


@dataclass(slots=True, kw_only=True)
class OutputRunner:
    """Runs ``test_command``, once or once per file, and reads the outcomes.

    A runner holds no state; one object serves all tasks and threads.

    A command that contains ``{file}`` runs once for each file of expected tests; ids are then
    ``FILE::NAME``.

    Attributes:
        name: Its name in ``Task.runner``.
        read: Returns the outcomes of a run that was not killed.
        prepare: Removes old reports before the run.
        report_problem: Returns what is wrong with a ``test_report``, or "".
        default_command: The command of tasks without one; "" if tasks must have one.
        names: Patterns of test files, and of files that configure the run.
        is_by_file: Whether ids are ``FILE::NAME`` without ``{file}``, too.
        negates: Whether `functions` knows Python functions of tests, so that they can be negated.
    """

    name: str
    read: Read
    prepare: Callable[[Sandbox, Task], object] = lambda _sandbox, _task: None
    report_problem: Callable[[Task], str] = lambda task: (
        f"is not used by this runner, got {task.test_report!r}" if task.test_report else ""
    )
    default_command: str = ""
    names: tuple[str, ...] = ()
    is_by_file: bool = False
    negates: bool = False
    records: ClassVar = False

    def problem(self, task: Task) -> str:
        """Returns what is wrong with the task's command, report or ids, or ""."""
        command = self._command(task)
        if not command:
            return f"field 'test_command' is missing, and runner {self.name!r} needs one"
        if problem := self.report_problem(task):
            return f"field 'test_report' {problem}"
        if self.is_by_file or FILE in command:
            wrong = [test for test in task.expected_tests if "::" not in test]
            return f"expected test {wrong[0]!r} is not FILE::NAME" if wrong else ""
        return ""

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns the part of the ids before the first ``::``, and the programs of the tree."""
        started = {pattern.lstrip("/") for pattern in started_patterns(self._command(task))}
        return tuple(sorted(_test_files(task) | started - Patch(task.gold_patch).paths))

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns `names`, and the programs of the tree that the command starts.

        The patterns, for `coding_gym.grading.selection.path_matcher`, match further files that the
        run collects or reads as configuration.
        """
        return (*self.names, *started_patterns(self._command(task)))

    def functions(
        self,
        task: Task,  # noqa: ARG002 — the contract, here and below
        files: Mapping[str, bytes],  # noqa: ARG002
    ) -> Mapping[str, tuple[str, ...]]:
        """Returns the test functions of expected tests, as ``FILE::CLASS::NAME``.

        Tests whose functions are not known are omitted; they are graded by structure alone.

        Args:
            task: The task.
            files: Content of `files` by path, with the hidden tests applied.
        """
        return {}

    def run(
        self,
        sandbox: Sandbox,
        task: Task,
        paths: tuple[str, ...],
        *,
        timeout_s: float,
        only: Collection[str] = (),  # noqa: ARG002
        num_checks: int = 0,  # noqa: ARG002
    ) -> Run:
        """Runs the command; the hidden tests and the patch are in the tree already.

        Statuses are by the ids that the task uses.

        Args:
            sandbox: Where.
            task: The task.
            paths: The test files, from `files`; those that do not exist are skipped.
            timeout_s: After so many seconds the run is killed.
            only: Has no effect: the command runs all tests.
            num_checks: Has no effect: assertions cannot record their outcomes.

        Raises:
            GradingError: The program that the command begins with is missing.
            SandboxError: The sandbox died.
        """
        self.prepare(sandbox, task)
        _check_program(sandbox, task, self._command(task))
        total, result = Run(ended=True), ExecResult(0, "")
        deadline = monotonic() + timeout_s
        for command, prefix in self._commands(task, paths):
            result = sandbox.run(
                command,
                timeout_s=max(deadline - monotonic(), 0.1),
                max_output_bytes=_MAX_OUTPUT_BYTES,
            )
            if result.timed_out:
                break
            run = self.read(sandbox, task, result)
            if not run.statuses:
                message = last_line(result.output, f"exit code {result.exit_code}")
                concerned = [test for test in task.expected_tests if test.startswith(prefix)]
                total.messages |= dict.fromkeys(concerned, message)
            for test, status in run.statuses.items():
                total.add(prefix + test, status, run.messages.get(test, ""))
            total.ended &= run.ended
            total.is_lost |= run.is_lost
        return total.finish(result)

    def _command(self, task: Task) -> str:
        return task.test_command.strip() or self.default_command

    def _commands(self, task: Task, paths: tuple[str, ...]) -> list[tuple[str, str]]:
        command = self._command(task)
        if FILE not in command:
            return [(command, "")]
        paths = tuple(path for path in paths if path in _test_files(task))
        return [(command.replace(FILE, shlex.quote(path)), f"{path}::") for path in paths]


def _test_files(task: Task) -> set[str]:
    """Returns the files that the ids of the expected tests name."""
    named = [test.partition("::") for test in task.expected_tests]
    return {path for path, colons, _ in named if colons and _is_path(path)}


def _is_path(text: str) -> bool:
    return "." in text.rpartition("/")[2] and text.isprintable()


def _check_program(sandbox: Sandbox, task: Task, command: str) -> None:
    """Refuses a command whose program is missing, before code under test can fake that error.

    A program in the tree is not checked: the policy can remove it, and no test passes then.
    """
    words = [word for word in command.split() if "=" not in word]
    program = words[0] if words else ""
    if not _PLAIN_WORD.fullmatch(program):
        return
    is_of_tree = f'[[ $(realpath -ms -- {program}) == "$PWD"/* ]] || ' if "/" in program else ""
    if not sandbox.run(f"{is_of_tree}command -v {program} >/dev/null").ok:
        raise GradingError(
            f"task {task.task_id}: there is no {program!r} where its tests run, and field "
            "'test_command' begins with it; install it"
        )


class CommandRunner(OutputRunner):
    """Runs the expected tests, each of which *is* a shell command, such as ``make test``.

    A test passes if its command exits with 0. The commands run one after another in one sandbox.

    A patch may change scripts that only other scripts name, and files that a command names by a
    folder or a glob, unless they have names of tests. The code under test can exit with 0. Prefer a
    runner that reads results by name.
    """

    def __init__(self) -> None:
        super().__init__(name="command", read=_read_exit_code, names=(*ANY, *TEST_FOLDERS))

    def problem(self, task: Task) -> str:
        """Returns what is wrong with the task's commands, or ""."""
        if task.test_command:
            return f"field 'test_command' is not used by this runner, got {task.test_command!r}"
        wrong = [test for test in task.expected_tests if not test.strip() or "\0" in test]
        return f"expected test {wrong[0]!r} is no shell command" if wrong else ""

    def files(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002 — the contract
        """Returns no files: commands have none."""
        return ()

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns files that the commands name, test names of all languages, and test folders."""
        return (*named_patterns(task.expected_tests), *self.names)

    def _commands(self, task: Task, paths: tuple[str, ...]) -> list[tuple[str, str]]:  # noqa: ARG002
        return [(test, test) for test in task.expected_tests]


def _read_exit_code(_sandbox: Sandbox, _task: Task, result: ExecResult) -> Run:
    run = Run(ended=True)
    message = f"exit code {result.exit_code}: {last_line(result.output, 'no output')}"
    run.add("", *((TestStatus.FAILED, message) if result.exit_code else (TestStatus.PASSED,)))
    return run


def _read_output(parse: Callable[[str], Run]) -> Read:
    """Returns a reader of the output.

    If all tests passed but the exit code is not 0, the run is incomplete: something else failed, or
    the code under test ended the program.
    """

    def read(_sandbox: Sandbox, _task: Task, result: ExecResult) -> Run:
        run = parse(result.output)
        if result.exit_code and run.statuses:
            run.ended &= not {*run.statuses.values()} <= {TestStatus.PASSED, TestStatus.SKIPPED}
        return run

    return read


def _report_problem(task: Task) -> str:
    """Returns why the patterns of JUnit XML files cannot be used, or ""."""
    if not task.test_report.split():
        return "is missing; it must say where the reports lie, such as 'build/*.xml'"
    outside = [p for p in task.test_report.split() if p.startswith("/") or ".." in p.split("/")]
    return f"must stay in the tree, got {outside[0]!r}" if outside else ""


def _clear_reports(sandbox: Sandbox, task: Task) -> object:
    return sandbox.run(f"{_listing(task)} | xargs -0 -r rm -rf --")


def _read_reports(sandbox: Sandbox, task: Task, _: ExecResult) -> Run:
    """Returns the outcomes in the JUnit XML files that ``test_report`` names by glob patterns."""
    listed = sandbox.run(_listing(task)).output.split("\0")
    paths = sorted(path for path in listed if path)
    if len(paths) > _MAX_REPORTS:
        return Run()
    reports = []
    for path in paths:
        try:
            reports.append(sandbox.read_file(path))
        except OSError:  # a folder, a pipe, or too large: no report
            return Run()
    return read_junit(reports)


TEXT_RUNNERS = (
    OutputRunner(
        name="cargo",
        read=_read_output(read_cargo),
        default_command="cargo test --offline --no-fail-fast",
        names=(*CARGO, *TEST_FOLDERS),
        is_by_file=True,
    ),
    OutputRunner(
        name="go",
        read=_read_output(read_go),
        default_command="go test -json -count=1 ./...",
        names=GO,
    ),
    OutputRunner(
        name="junit",
        read=_read_reports,
        prepare=_clear_reports,
        report_problem=_report_problem,
        names=(*ANY, *TEST_FOLDERS),
    ),
    OutputRunner(name="tap", read=_read_output(read_tap), names=(*ANY, *TEST_FOLDERS)),
)


def _listing(task: Task) -> str:
    patterns = " ".join(_glob(pattern) for pattern in task.test_report.split())
    return f"shopt -s globstar nullglob; printf '%s\\0' {patterns}"


def _glob(pattern: str) -> str:
    """Quotes a pattern, except for its wildcards."""
    return "".join(char if char in "*?[]-" else shlex.quote(char) for char in pattern)
