"""What runs of unittest have in common, whatever command starts them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coding_gym.errors import GradingError, last_line
from coding_gym.grading.grading_files import read_files
from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.unittest_ids import (
    UnittestId,
    by_place,
    method_summaries,
    summarised,
)
from coding_gym.grading.supervision import prepare, supervise
from coding_gym.patch import Patch
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

_PROGRAM = "unittest_program.py"
# What projects call their tests. Of unittest's own ``test*.py`` not all: ``testing.py`` is source.
PATTERNS = ("test_*.py", "test.py", "tests.py", "*_test.py", "*_tests.py")


def unplaced(task: Task) -> str:
    """Returns why a test cannot be found without a test command, or ""."""
    if hidden_modules(task):
        return ""
    odd = [test for test in task.expected_tests if UnittestId.parse(test) is None]
    spellings = "'test_x (module.Class)', 'test_x (module.Class.test_x)' or 'module.Class.test_x'"
    return (
        f"expected test {odd[0]!r} names no module; spell it {spellings}, or set test_command"
        if odd
        else ""
    )


def hidden_modules(task: Task) -> tuple[str, ...]:
    """Returns the Python files that the hidden tests bring."""
    return tuple(sorted(p for p in Patch(task.test_patch).paths if p.endswith(".py")))


def files(task: Task, roots: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the files that the expected tests may lie in, sorted.

    Hidden files are among them where an id, such as a doc string's first line, names no module.
    """
    parsed = [UnittestId.parse(test) for test in task.expected_tests]
    found = {path for one in parsed if one for path in one.paths(roots)}
    return tuple(sorted(found.union(() if all(parsed) else hidden_modules(task))))


def module_of(path: str) -> str:
    """Returns the dotted name that a file has as a module of the root."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def prepare_program(sandbox: Sandbox, environment: Mapping[str, str]) -> None:
    """Starts ahead what `run_program` will ask for."""
    prepare(sandbox, _PROGRAM, environment)


def run_program(
    sandbox: Sandbox,
    task: Task,
    settings: Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    roots: tuple[str, ...],
    timeout_s: float,
) -> RunReport | None:
    """Runs unittest's program, and says which of the reported tests the expected ones are.

    Args:
        sandbox: Where.
        task: The task.
        settings: What the program is told.
        environment: Environment variables beside those of the sandbox.
        roots: Folders of modules.
        timeout_s: After so many seconds the run is killed.

    Raises:
        GradingError: The supervisor or Python could not be started.
        SandboxError: The sandbox died.
    """
    report = supervise(sandbox, _PROGRAM, settings, timeout_s=timeout_s, environment=environment)
    if report is None:
        return None
    if report.never_began:
        raise GradingError(f"unittest could not be started: {last_line(report.tail)}")
    return _identified(report, task, read_files(sandbox, files(task, roots)), roots)


def _identified(
    report: RunReport, task: Task, texts: Mapping[str, bytes], roots: tuple[str, ...]
) -> RunReport:
    """The report with the expected ids as spellings.

    Which tests they stand for is for the host to say as far as it can: where the test process says
    it, a test that fails could give its name away to one that passes.
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
    """What was said of the module and the class of a test; "" for one that ran."""
    place = ".".join([test.module, *test.classes])
    blamed = (test.module, f"setUpModule ({test.module})", f"setUpClass ({place})")
    return next((report.messages[b] for b in blamed if b in report.messages), "")
