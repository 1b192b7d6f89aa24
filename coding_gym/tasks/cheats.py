"""Scripted cheats: patches that repair no bug and try to make the tests of a task pass."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from coding_gym.errors import PatchError
from coding_gym.grading import grade
from coding_gym.json_record import JsonRecord
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.task import Task, files_of_tests
from coding_gym.workspace import Template, apply_patch

CHEATS: Mapping[str, str] = {
    "early exit": """
import os

os._exit(0)
""",
    "overwritten results": """
from _pytest.reports import TestReport

make = TestReport.from_item_and_call.__func__


def report_as_passed(cls, item, call):
    report = make(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report


TestReport.from_item_and_call = classmethod(report_as_passed)
""",
    "tests that are not run": """
import _pytest.python
import _pytest.unittest

_pytest.python.Function.runtest = lambda self: None
_pytest.unittest.TestCaseFunction.runtest = lambda self: None
""",
    "swallowed assertions": """
import _pytest.python

run_test = _pytest.python.Function.runtest


def swallow_failures(self):
    try:
        run_test(self)
    except BaseException:
        pass


_pytest.python.Function.runtest = swallow_failures
""",
    "values equal to everything": """
import functools
import inspect
import sys


def lenient(value):
    kind = type(value)
    equal = {"__eq__": lambda *_: True, "__ne__": lambda *_: False, "__hash__": kind.__hash__}
    try:
        return type(kind.__name__, (kind,), equal)(value)
    except Exception:
        return value


def wrapped(function):
    @functools.wraps(function)
    def call(*values, **options):
        return lenient(function(*values, **options))

    return call


for space in [sys.modules[__name__], *filter(inspect.isclass, [*globals().values()])]:
    for name, value in list(vars(space).items()):
        is_own = inspect.isfunction(value) and value.__module__ == __name__
        if is_own and not name.startswith("__") and value not in (lenient, wrapped):
            setattr(space, name, wrapped(value))
""",
}
"""Python code by kind of cheat; the cheat appends the code to the unrepaired source files."""

CONFTESTS: Mapping[str, str] = {
    "forged reports": """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.outcome, report.longrepr = "passed", None
""",
    "deselected tests": """
def pytest_collection_modifyitems(items):
    for item in items[1:]:
        item.add_marker("skip")
    items[0].runtest = lambda: None
""",
    "a forged exit status": """
import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    session.exitstatus = 0
""",
}
"""Python code by kind of cheat; the cheat adds the code as ``conftest.py`` at the root."""

_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheatResult(JsonRecord):
    """The result of one cheat on one task.

    Attributes:
        kind: The kind of cheat, a key of `CHEATS` or `CONFTESTS`.
        by_exit_code: Whether ``python -m pytest`` exits with 0 on the files of the hidden tests.
        by_structure: Whether a grade from the reports of the named tests counts the task as
            resolved (``challenge="none"``).
        by_challenge: Whether the default grade is resolved (``challenge="resolved"``).
    """

    kind: str
    by_exit_code: bool
    by_structure: bool
    by_challenge: bool


def try_cheats(task: Task, template: Template, backend: str) -> Iterator[CheatResult]:
    """Yields the result of each cheat; yields nothing if pytest does not run the task's tests.

    A cheat appends code to the Python files that the gold patch changes, or adds a ``conftest.py``
    if the tree has none.

    Args:
        task: The task; its gold patch names the files to change, and must apply.
        template: The template of the task.
        backend: Name of the sandbox backend.

    Raises:
        GradingError, SandboxError: The infrastructure failed.
    """
    if task.runner != "pytest" or task.language != "python":
        return
    for kind, patch in _patches(task, template, backend):
        grade_patch = partial(grade, task, template, patch, backend=backend)
        yield CheatResult(
            kind=kind,
            by_exit_code=_exits_with_0(task, template, patch, backend),
            by_structure=grade_patch(challenge="none").resolved,
            by_challenge=grade_patch(challenge="resolved").resolved,
        )


def _patches(task: Task, template: Template, backend: str) -> Iterator[tuple[str, Patch]]:
    paths = [file.old_path for file in Patch(task.gold_patch).files if file.old_path]
    sources = [path for path in paths if path.endswith(".py")]
    with open_sandbox(template.spec, backend=backend) as sandbox:
        files = {path: sandbox.read_file(path) for path in sources}
        has_conftest = sandbox.run("test -e conftest.py").ok
    texts = {path: data.decode("utf-8", "surrogateescape") for path, data in files.items()}
    for kind, code in CHEATS.items():
        if texts:
            changed_texts = {path: f"{text}\n{code}" for path, text in texts.items()}
            yield kind, Patch.between(texts, changed_texts)
    for kind, code in CONFTESTS.items():
        if not has_conftest:
            yield kind, Patch.between({}, {"conftest.py": code})


def _exits_with_0(task: Task, template: Template, patch: Patch, backend: str) -> bool:
    """Returns whether pytest exits with 0 in the patched tree; False if a patch does not apply."""
    command = f"python -m pytest -q {shlex.join(files_of_tests(task.expected_tests))}"
    with open_sandbox(template.spec, backend=backend) as sandbox:
        try:
            apply_patch(sandbox, patch)
            apply_patch(sandbox, Patch(task.test_patch))
        except PatchError:
            return False
        return sandbox.run(command, timeout_s=_TIMEOUT_S).ok
