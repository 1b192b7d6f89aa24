"""Measures the effect of a patch on the visible tests of a task."""

import posixpath
from collections.abc import Mapping
from dataclasses import replace

from coding_gym.grade import GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.grading.runners import get_runner
from coding_gym.grading.runners.patterns import COLLECTED
from coding_gym.grading.selection import path_matcher
from coding_gym.grading.tree import spec_for_tests
from coding_gym.patch import Patch
from coding_gym.process_cache import ProcessCache
from coding_gym.sandbox import open_sandbox
from coding_gym.task import Task
from coding_gym.workspace import Template

RUNNER = "pytest"
"""The only runner whose visible tests are found by file names."""

_MAX_FILES = 100
_LIST = "find . -type f -name '*.py' -not -path './.git/*'"


def potential(task: Task, template: Template, patch: Patch, backend: str) -> float:
    """Returns how much a patch changes the fraction of passing visible tests, -1 to 1.

    The patch is graded as with hidden tests (`coding_gym.grading.grade`): in a clean sandbox,
    without its changes of tests and test configuration, and with negated tests.

    Raises:
        GradingError, SandboxError: An infrastructure failure.
    """
    expected_files = get_runner(RUNNER).files(task)
    base_statuses = _base_statuses.get(
        (backend, template.spec.image, template.key, expected_files),
        lambda: _run_on_base(task, template, backend),
    )
    if not base_statuses or patch.is_empty:
        return 0.0
    visible_task = replace(task, test_patch="", fail_to_pass=(), pass_to_pass=tuple(base_statuses))
    verdict = grade(visible_task, template, patch, backend=backend)
    if verdict.reason is GradeReason.EMPTY_PATCH:  # the patch changes only tests
        return 0.0
    statuses = verdict.pass_to_pass if verdict.reason.has_results else {}
    return (_num_passed(statuses) - _num_passed(base_statuses)) / len(base_statuses)


_base_statuses = ProcessCache[Mapping[str, TestStatus]]()


def _run_on_base(task: Task, template: Template, backend: str) -> Mapping[str, TestStatus]:
    """Returns the status of every visible test of the base tree; empty if the run does not end.

    Visible tests are the tests in the tree's files ``test_*.py`` and ``*_test.py``. If there are
    more than 100 such files, only the files of the expected tests are run.
    """
    runner = get_runner(RUNNER)
    with open_sandbox(spec_for_tests(task, template), backend=backend) as sandbox:
        is_collected = path_matcher(COLLECTED)
        lines = sandbox.run(_LIST, timeout_s=task.grading_timeout_s).output.splitlines()
        paths = sorted(path for path in map(posixpath.normpath, lines) if is_collected(path))
        if len(paths) > _MAX_FILES:
            paths = sorted(set(paths) & set(runner.files(task)))
        report = runner.run(sandbox, task, tuple(paths), timeout_s=task.grading_timeout_s)
    if not paths or not report.ended:
        return {}
    outcomes = (TestStatus.PASSED, TestStatus.FAILED, TestStatus.ERROR)
    return {test: status for test, status in report.statuses.items() if status in outcomes}


def _num_passed(statuses: Mapping[str, TestStatus]) -> int:
    return sum(status is TestStatus.PASSED for status in statuses.values())
