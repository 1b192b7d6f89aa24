"""Commands that say by their exit code whether all is well.

Each expected test *is* a shell command, such as ``make test`` or ``build/check rounding``, and has
passed where it exits with 0. They run one after the other, in the order of the task, in one
sandbox. ``test_command`` runs once before them, to build what they need; if it fails, none is run.

The graders' are all files that a command names, every file that is called as any runner's tests or
configuration are, and all test folders; see `coding_gym.grading.runners.known_tests`. The policy's
is the rest, and whatever the gold patch touches. The rest has in it a script that only another
script names, and what a folder or a glob in a command stands for, unless it is called as tests are.

A program that the code under test is linked into can exit with 0 whenever it likes, and nothing
here finds that out. Prefer a runner that reads results by name.
"""

from time import monotonic

from coding_gym.errors import last_line
from coding_gym.grade import TestStatus
from coding_gym.grading.formats.outcomes import Outcomes
from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.command_words import named_patterns
from coding_gym.grading.runners.commands import run_command
from coding_gym.grading.runners.known_tests import ANY, TEST_FOLDERS
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task


class CommandRunner:
    """Runs the expected tests as commands."""

    name = "command"

    def problem(self, task: Task) -> str:
        """Returns the first expected test that no shell can be given."""
        odd = [test for test in task.expected_tests if not test.strip() or "\0" in test]
        return f"expected test {odd[0]!r} is no shell command" if odd else ""

    def files(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002 — the contract, here and below
        """Returns none: a command is no file."""
        return ()

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns what the commands name, what tests are called in any language, test folders."""
        return (*named_patterns(task), *ANY, *TEST_FOLDERS)

    def run(
        self,
        sandbox: Sandbox,
        task: Task,
        paths: tuple[str, ...],  # noqa: ARG002 — the contract
        *,
        timeout_s: float,
    ) -> RunReport | None:
        """Runs the commands; they share the time."""
        deadline = monotonic() + timeout_s
        outcomes = Outcomes()
        tail = ""
        for command in (task.test_command.strip(), *task.expected_tests):
            if not command:
                continue
            run = run_command(sandbox, command, timeout_s=max(deadline - monotonic(), 0.1))
            if run.timed_out:
                return run.cut_short()
            said = f"exit code {run.exit_code}: {last_line(run.output, 'no output')}"
            tail = run.tail
            if command in task.expected_tests:
                status = TestStatus.FAILED if run.exit_code else TestStatus.PASSED
                outcomes.add(command, status, said if run.exit_code else "")
            elif run.exit_code:
                outcomes.messages |= dict.fromkeys(task.expected_tests, said)
                break
        return RunReport(
            statuses=outcomes.statuses,
            messages=outcomes.messages,
            ready=True,
            ended=True,
            tail=tail,
        )
