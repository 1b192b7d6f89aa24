"""Runners that start a command of the task and read what it printed, or the files that it left.

What the code under test prints cannot be told from what the tests print, so these runners find out
less than those with a reporter of their own: see ``docs/threat-model.md``.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from coding_gym.errors import GradingError, last_line
from coding_gym.grading.formats.outcomes import Outcomes
from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.command_words import started_patterns
from coding_gym.grading.runners.commands import CommandRun, run_command
from coding_gym.patch import Patch
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

FILE, FILES = "{file}", "{files}"
Read = Callable[[Sandbox, Task, CommandRun], Outcomes]
_PLAIN_WORD = re.compile(r"[\w.+/-]+")


def read_output(parse: Callable[[str, int], Outcomes]) -> Read:
    """Returns a reader of what a command printed, in a format that takes its exit code, too."""
    return lambda _sandbox, _task, run: parse(run.output, run.exit_code)


@dataclass(slots=True, kw_only=True)
class OutputRunner:
    """Runs ``test_command``, once or once per file, and reads the outcomes.

    A command that says ``{file}`` runs once for each file of expected tests, which are then named
    ``FILE::NAME``. ``{files}`` stands for all those files.

    Attributes:
        name: What ``Task.runner`` calls it.
        read: Returns the outcomes of a run that was not cut short.
        clear: Removes what could be mistaken for outcomes of the run that begins now.
        report_problem: Returns what is wrong with a ``test_report``, or "".
        default_command: What runs where the task has no command; "" where it must have one.
        names: Patterns of test files, and of files that configure the run.
        is_by_file: Whether ids are ``FILE::NAME`` without ``{file}``, too.
    """

    name: str
    read: Read
    clear: Callable[[Sandbox, Task], None] = lambda _sandbox, _task: None
    report_problem: Callable[[Task], str] = lambda task: (
        f"is not used by this runner, got {task.test_report!r}" if task.test_report else ""
    )
    default_command: str = ""
    names: tuple[str, ...] = ()
    is_by_file: bool = False

    def problem(self, task: Task) -> str:
        """Returns what is wrong with the task's command, report or ids, or ""."""
        command = self._command(task)
        if not command:
            return f"field 'test_command' is missing, and runner {self.name!r} needs one"
        if problem := self.report_problem(task):
            return f"field 'test_report' {problem}"
        if self.is_by_file or FILE in command:
            odd = [test for test in task.expected_tests if "::" not in test]
            return f"expected test {odd[0]!r} is not FILE::NAME" if odd else ""
        return ""

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns what stands before the first ``::`` of the ids, and the programs of the tree."""
        started = {pattern.lstrip("/") for pattern in started_patterns(self._command(task))}
        return tuple(sorted(_test_files(task) | started - Patch(task.gold_patch).paths))

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns `names`, and the programs of the tree that the command starts."""
        return (*self.names, *started_patterns(self._command(task)))

    def run(
        self, sandbox: Sandbox, task: Task, paths: tuple[str, ...], *, timeout_s: float
    ) -> RunReport | None:
        """Runs the command.

        Raises:
            GradingError: The program that the command begins with is missing.
        """
        _check_program(sandbox, task, self._command(task))
        self.clear(sandbox, task)
        total = Outcomes()
        tail = ""
        deadline = monotonic() + timeout_s
        for command, prefix in self._commands(task, paths):
            run = run_command(sandbox, command, timeout_s=max(deadline - monotonic(), 0.1))
            if run.timed_out:
                return run.cut_short()
            found = self.read(sandbox, task, run)
            if not found.statuses:
                said = last_line(run.output, f"exit code {run.exit_code}")
                total.messages |= {
                    test: said for test in task.expected_tests if test.startswith(prefix)
                }
            total.update(found, prefix)
            tail = run.tail
        return RunReport(
            statuses=total.statuses,
            messages=total.messages,
            ready=True,
            ended=total.ended,
            tail=tail,
        )

    def _command(self, task: Task) -> str:
        return task.test_command.strip() or self.default_command

    def _commands(self, task: Task, paths: tuple[str, ...]) -> list[tuple[str, str]]:
        paths = tuple(path for path in paths if path in _test_files(task))
        command = self._command(task).replace(FILES, shlex.join(paths))
        if FILE not in command:
            return [(command, "")]
        return [(command.replace(FILE, shlex.quote(path)), f"{path}::") for path in paths]


def _test_files(task: Task) -> set[str]:
    """The files of the expected tests, as far as ids tell."""
    named = [test.partition("::") for test in task.expected_tests]
    return {path for path, colons, _ in named if colons and _is_path(path)}


def _is_path(text: str) -> bool:
    return "." in text.rpartition("/")[2] and text.isprintable()


def _check_program(sandbox: Sandbox, task: Task, command: str) -> None:
    """Refuses a command whose program this machine lacks, before code under test could say so.

    One that lies in the tree is the task's or, where the gold patch touches it, the policy's:
    without it no test passes.
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
