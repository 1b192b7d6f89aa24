"""unittest and Django's runner, with a result of ours in their process."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coding_gym.errors import GradingError, last_line
from coding_gym.grading.grading_files import read_files
from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.known_tests import PYTHON
from coding_gym.grading.runners.unittest_command import TestCommand
from coding_gym.grading.runners.unittest_ids import (
    UnittestId,
    by_place,
    method_summaries,
    methods,
    summarised,
)
from coding_gym.grading.supervision import supervise
from coding_gym.patch import Patch
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

_PROGRAM = "unittest_program.py"
# Where modules are looked for that no command places.
_ROOTS = ("", "tests", "test")
# SWE-bench's for Django itself, with one process in place of many.
_DJANGO_ROOT = "tests/"
_DJANGO_SCRIPT = "tests/runtests.py"
_DJANGO_ARGUMENTS = ("--verbosity", "2", "--settings=test_sqlite")


@dataclass(slots=True)
class UnittestRunner:
    """Runs ``python -m unittest``, or a script such as Django's, as the task says.

    Without a ``test_command`` it runs the modules of the expected tests. ``--failfast`` and
    ``--parallel`` have no effect. A script runs as it is, in the process that reports: the suite
    that it hands to unittest's ``TextTestRunner``, as Django's runner does, counts. Django may be
    the code under test itself and forge all of it; the challenge detects that.

    Attributes:
        name: ``"unittest"``, or ``"django"`` for scripts.
    """

    name: str

    def problem(self, task: Task) -> str:
        """Returns what is wrong with the test command, or which test cannot be found, or ""."""
        command = TestCommand.parse(task.test_command)
        is_django = self.name == "django"
        fits = command and (command.script if is_django else command.module == "unittest")
        if fits or not task.test_command:
            return "" if fits else _unplaced(task)
        wrong = "is not 'python -m unittest …'"
        if is_django:
            wrong = (
                "starts no script of the tree, such as './tests/runtests.py …' or './manage.py …'"
            )
        return f"test_command {task.test_command!r} {wrong}"

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns where the modules of the expected tests may lie.

        Hidden files are among them where an id, such as a doc string's first line, names no module.
        """
        parsed = [UnittestId.parse(test) for test in task.expected_tests]
        found = {path for one in parsed if one for path in one.paths(self._roots(task))}
        return tuple(sorted(found.union(() if all(parsed) else _hidden_modules(task))))

    def patterns(self, task: Task) -> tuple[str, ...]:
        """Returns what test modules are called, where a command collects them; Django's script."""
        command = self._command(task)
        script = (f"./{command.script}",) if command and command.script else ()
        return (*script, *(PYTHON if command and command.collects and task.test_command else ()))

    def functions(self, task: Task, files: Mapping[str, bytes]) -> Mapping[str, tuple[str, ...]]:
        """Returns the methods that the expected ids name, whatever their spelling."""
        return methods(task.expected_tests, files, self._roots(task))

    def run(
        self, sandbox: Sandbox, task: Task, paths: tuple[str, ...], *, timeout_s: float
    ) -> RunReport | None:
        """Runs them under a supervisor; see `coding_gym.grading.supervision.supervise`."""
        command = self._command(task)
        settings: dict[str, Any] = {"modules": _modules(task, paths), "roots": list(_ROOTS)}
        if command:
            settings = {"arguments": _in_one_process(command.arguments)}
        if command and command.script:
            settings["script"] = command.script
        environment = self._environment(task)
        report = supervise(
            sandbox, _PROGRAM, settings, timeout_s=timeout_s, environment=environment
        )
        if report is None:
            return None
        if report.never_began:
            raise GradingError(f"unittest could not be started: {last_line(report.tail)}")
        texts = read_files(sandbox, self.files(task))
        return _identified(report, task, texts, self._roots(task))

    def _command(self, task: Task) -> TestCommand | None:
        """The task's command; for Django the default one with the labels of the expected tests."""
        command = TestCommand.parse(task.test_command)
        if command or self.name != "django":
            return command
        parsed = [UnittestId.parse(test) for test in task.expected_tests]
        labels = {one.module for one in parsed if one}
        if not all(parsed):
            paths = [p for p in _hidden_modules(task) if p.startswith(_DJANGO_ROOT)]
            labels |= {_module_of(path.removeprefix(_DJANGO_ROOT)) for path in paths}
        return TestCommand(_DJANGO_SCRIPT, "", (*_DJANGO_ARGUMENTS, *sorted(labels)), {})

    def _roots(self, task: Task) -> tuple[str, ...]:
        command = self._command(task)
        return command.roots if command else _ROOTS

    def _environment(self, task: Task) -> dict[str, str]:
        command = self._command(task)
        own = command.environment if command else {}
        return {**own, "DJANGO_TEST_PROCESSES": "1"} if self.name == "django" else {**own}


def _unplaced(task: Task) -> str:
    """Why a test cannot be found without a test command, or ""."""
    if _hidden_modules(task):
        return ""
    odd = [test for test in task.expected_tests if UnittestId.parse(test) is None]
    spellings = "'test_x (module.Class)', 'test_x (module.Class.test_x)' or 'module.Class.test_x'"
    return (
        f"expected test {odd[0]!r} names no module; spell it {spellings}, or set test_command"
        if odd
        else ""
    )


def _hidden_modules(task: Task) -> tuple[str, ...]:
    """The Python files that the hidden tests bring."""
    return tuple(sorted(p for p in Patch(task.test_patch).paths if p.endswith(".py")))


def _module_of(path: str) -> str:
    """The dotted name that a file has as a module of the root."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _modules(task: Task, paths: tuple[str, ...]) -> list[str]:
    """The modules of the expected tests, dotted, as their spellings name them.

    Hidden files are among them where an id names no module, under the name that they have in the
    root; never a second time.
    """
    parsed = [UnittestId.parse(test) for test in task.expected_tests]
    named = {one.module for one in parsed if one}
    if not all(parsed):
        placed = {path for one in parsed if one for path in one.paths(_ROOTS)}
        named |= {_module_of(p) for p in _hidden_modules(task) if p in paths and p not in placed}
    return sorted(named)


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


def _identified(
    report: RunReport, task: Task, texts: Mapping[str, bytes], roots: tuple[str, ...]
) -> RunReport:
    """The report with the expected ids as spellings.

    The host finds out which tests they stand for, as far as it can: where the test process says it,
    a test that fails could give its name away to one that passes.
    """
    places, summaries = by_place(report.statuses), method_summaries(texts)
    spellings: dict[str, tuple[str, ...]] = {}
    messages = dict(report.messages)
    for test in task.expected_tests:
        if parsed := UnittestId.parse(test):
            spellings[test] = parsed.among(places, roots)
            messages.setdefault(test, _blame(parsed, report))
        else:
            said = set(report.spellings.get(test, ()))
            spellings[test] = tuple(sorted(said | summarised(test, report.statuses, summaries)))
    return replace(
        report,
        # A test of that very name beside those that the host found would be a name made up.
        statuses={name: s for name, s in report.statuses.items() if not spellings.get(name)},
        spellings=spellings,
        messages={name: message for name, message in messages.items() if message},
    )


def _blame(test: UnittestId, report: RunReport) -> str:
    """The message about the module or the class of a test; "" for one that ran."""
    place = ".".join([test.module, *test.classes])
    blamed = (test.module, f"setUpModule ({test.module})", f"setUpClass ({place})")
    return next((report.messages[b] for b in blamed if b in report.messages), "")
