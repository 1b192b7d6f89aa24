"""unittest, with a result of ours in its process."""

from collections.abc import Mapping
from typing import Any

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

# Where modules are looked for that no command places.
_ROOTS = ("", "tests", "test")


class UnittestRunner:
    """Runs ``python -m unittest`` on the modules of the expected tests, or as the task says.

    A ``test_command`` is one of ``python -m unittest`` with names, files or ``discover``; its
    ``--failfast`` has no effect.
    """

    name = "unittest"
    root_files: tuple[str, ...] = ()
    config_names: frozenset[str] = frozenset()

    def problem(self, task: Task) -> str:
        """Returns what is wrong with the test command, or which test cannot be found, or ""."""
        command = TestCommand.parse(task.test_command)
        if task.test_command and (command is None or command.module != "unittest"):
            return f"test_command {task.test_command!r} is not 'python -m unittest …'"
        return "" if command else unplaced(task)

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns where the modules of the expected tests may lie, with hidden Python files."""
        return files(task, _roots(task))

    def patterns(self, configs: Mapping[str, str]) -> tuple[str, ...]:  # noqa: ARG002 — protocol
        """Returns what test modules are called; where expected tests lie is known besides."""
        return PATTERNS

    def functions(self, task: Task, files: Mapping[str, bytes]) -> Mapping[str, tuple[str, ...]]:
        """Returns the methods that the expected ids name, whatever their spelling."""
        return methods(task.expected_tests, files, _roots(task))

    def can_prepare(self, task: Task) -> bool:  # noqa: ARG002 — protocol
        """Always: unittest needs nothing but Python."""
        return True

    def prepare(self, sandbox: Sandbox, task: Task) -> None:
        """Starts a supervisor and a process with unittest; see `supervision.prepare`."""
        prepare_program(sandbox, _environment(task))

    def run(
        self, sandbox: Sandbox, task: Task, paths: tuple[str, ...], *, timeout_s: float
    ) -> RunReport | None:
        """Runs them under a supervisor; see `coding_gym.grading.supervision.supervise`."""
        command = TestCommand.parse(task.test_command)
        settings: dict[str, Any] = {"modules": _modules(task, paths), "roots": list(_ROOTS)}
        if command:
            settings = {"arguments": command.arguments}
        return run_program(
            sandbox, task, settings, _environment(task), roots=_roots(task), timeout_s=timeout_s
        )


def _modules(task: Task, paths: tuple[str, ...]) -> list[str]:
    """The modules of the expected tests, dotted, as their spellings name them.

    Hidden files are among them where an id names no module, under the name that they have in the
    root; never a second time.
    """
    parsed = [UnittestId.parse(test) for test in task.expected_tests]
    named = {one.module for one in parsed if one}
    if not all(parsed):
        placed = {path for one in parsed if one for path in one.paths(_ROOTS)}
        named |= {module_of(p) for p in hidden_modules(task) if p in paths and p not in placed}
    return sorted(named)


def _environment(task: Task) -> Mapping[str, str]:
    command = TestCommand.parse(task.test_command)
    return command.environment if command else {}


def _roots(task: Task) -> tuple[str, ...]:
    command = TestCommand.parse(task.test_command)
    return command.roots if command else _ROOTS
