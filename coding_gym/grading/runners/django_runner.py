"""Django's own runner and those of its projects, reporting as unittest does."""

from collections.abc import Mapping

from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.unittest_command import TestCommand
from coding_gym.grading.runners.unittest_ids import UnittestId, methods
from coding_gym.grading.runners.unittest_suite import (
    PATTERNS,
    files,
    hidden_modules,
    module_of,
    prepare_program,
    run_program,
    unplaced,
)
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

# SWE-bench's for Django itself, with one process in place of many.
_DEFAULT_ROOT = "tests/"
_DEFAULT_SCRIPT = "tests/runtests.py"
_DEFAULT_ARGUMENTS = ("--verbosity", "2", "--settings=test_sqlite")
_SCRIPTS = frozenset({"runtests.py", "manage.py"})
_ONE_PROCESS = {"DJANGO_TEST_PROCESSES": "1"}


class DjangoRunner:
    """Runs ``tests/runtests.py LABELS`` or ``manage.py test LABELS``, whatever script a task names.

    The script runs as it is, in the process that reports: what it hands to unittest's
    ``TextTestRunner``, as Django's runner does, is what counts. Tests run in one process. Django is
    code under test itself, so all of it could be forged; the challenge finds that out.
    """

    name = "django"
    root_files: tuple[str, ...] = ()
    config_names = _SCRIPTS

    def problem(self, task: Task) -> str:
        """Returns what is wrong with the test command, or which test cannot be found, or ""."""
        command = TestCommand.parse(task.test_command)
        if task.test_command and (command is None or not command.script):
            return (
                f"test_command {task.test_command!r} starts no script of the tree, such as"
                f" './{_DEFAULT_SCRIPT} …' or 'python manage.py test …'"
            )
        return "" if command else unplaced(task)

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns where the modules of the expected tests may lie, with hidden Python files."""
        return files(task, _command(task).roots)

    def patterns(self, configs: Mapping[str, str]) -> tuple[str, ...]:  # noqa: ARG002 — protocol
        """Returns what test modules are called; where expected tests lie is known besides."""
        return PATTERNS

    def functions(self, task: Task, files: Mapping[str, bytes]) -> Mapping[str, tuple[str, ...]]:
        """Returns the methods that the expected ids name, whatever their spelling."""
        return methods(task.expected_tests, files, _command(task).roots)

    def can_prepare(self, task: Task) -> bool:  # noqa: ARG002 — protocol
        """Always: unittest needs nothing but Python."""
        return True

    def prepare(self, sandbox: Sandbox, task: Task) -> None:
        """Starts a supervisor and a process with unittest; see `supervision.prepare`."""
        prepare_program(sandbox, _environment(_command(task)))

    def run(
        self,
        sandbox: Sandbox,
        task: Task,
        paths: tuple[str, ...],  # noqa: ARG002 — protocol; the command names modules
        *,
        timeout_s: float,
    ) -> RunReport | None:
        """Runs them under a supervisor; see `coding_gym.grading.supervision.supervise`."""
        command = _command(task)
        settings = {"script": command.script, "arguments": _in_one_process(command.arguments)}
        return run_program(
            sandbox,
            task,
            settings,
            _environment(command),
            roots=command.roots,
            timeout_s=timeout_s,
        )


def _command(task: Task) -> TestCommand:
    """The task's command, or the default one with the labels of the expected tests."""
    if command := TestCommand.parse(task.test_command):
        return command
    parsed = [UnittestId.parse(test) for test in task.expected_tests]
    labels = {one.module for one in parsed if one}
    if not all(parsed):
        paths = [p for p in hidden_modules(task) if p.startswith(_DEFAULT_ROOT)]
        labels |= {module_of(path.removeprefix(_DEFAULT_ROOT)) for path in paths}
    return TestCommand(_DEFAULT_SCRIPT, "", (*_DEFAULT_ARGUMENTS, *sorted(labels)), {})


def _environment(command: TestCommand) -> dict[str, str]:
    return {**command.environment, **_ONE_PROCESS}


def _in_one_process(arguments: tuple[str, ...]) -> list[str]:
    """The arguments without ``--parallel N``, whose tests would run where nothing reports."""
    kept: list[str] = []
    is_number = False
    for word in arguments:
        follows, is_number = is_number, word == "--parallel"
        if follows and (word.isdecimal() or word == "auto"):
            continue
        if not (is_number or word.startswith("--parallel=")):
            kept.append(word)
    return kept
