"""How the visible tests of a task go with a patch, compared with how they go without one."""

import fnmatch
import posixpath
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from coding_gym.grade import GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.grading.room import read_files, roomier
from coding_gym.grading.runners import get_runner
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task
from coding_gym.workspace import Template

RUNNER = "pytest"
"""The only runner whose tests are found by their files."""

_MAX_FILES = 100
_MAX_REMEMBERED = 256
_LIST = "find . -type f -name '*.py' -not -path './.git/*'"


@dataclass(frozen=True, slots=True)
class VisibleTests:
    """The tests that the base tree holds, and how they go there.

    Attributes:
        at_base: Status by id, of those that ran.
    """

    at_base: Mapping[str, TestStatus]

    def potential(self, task: Task, template: Template, patch: Patch, *, backend: str) -> float:
        """Returns how many more of the tests pass with a patch, as a share of them, from -1 to 1.

        The patch is graded as the hidden tests grade it (`coding_gym.grading.grade`): in a clean
        sandbox, without its changes of tests and of their configuration, and with canaries.

        Args:
            task: The task.
            template: Its template.
            patch: The change so far.
            backend: Name of the sandbox backend.

        Raises:
            GradingError, SandboxError: The machinery failed.
        """
        if not self.at_base or patch.is_empty:
            return 0.0
        visible = replace(task, test_patch="", fail_to_pass=(), pass_to_pass=tuple(self.at_base))
        verdict = grade(visible, template, patch, backend=backend)
        if verdict.reason is GradeReason.EMPTY_PATCH:  # nothing but tests was changed
            return 0.0
        is_measured = verdict.reason in (GradeReason.RESOLVED, GradeReason.TESTS_FAILED)
        after = verdict.pass_to_pass if is_measured else {}
        return (_num_passed(after) - _num_passed(self.at_base)) / len(self.at_base)


def visible_tests(task: Task, template: Template, *, backend: str) -> VisibleTests:
    """Returns the visible tests of a task, run once per process, template and expected files.

    They are those in the base tree's test files, by pytest's patterns; in a tree with more than 100
    such files only those in the files of the expected tests. Where the run does not end there are
    none.

    Args:
        task: A task whose runner is `RUNNER`.
        template: Its template.
        backend: Name of the sandbox backend.

    Raises:
        GradingError, SandboxError: The machinery failed.
    """
    key = f"{backend} {template.spec.image} {template.key} {get_runner(RUNNER).files(task)}"
    with _lock:
        known = _remembered.get(key)
    if known is None:
        with open_sandbox(roomier(template.spec), backend=backend) as sandbox:
            known = VisibleTests(_survey(task, sandbox))
        with _lock:
            _remembered[key] = known
            while len(_remembered) > _MAX_REMEMBERED:
                _remembered.popitem(last=False)
    return known


_remembered: OrderedDict[str, VisibleTests] = OrderedDict()
_lock = threading.Lock()


def _survey(task: Task, sandbox: Sandbox) -> dict[str, TestStatus]:
    runner = get_runner(RUNNER)
    found = read_files(sandbox, runner.root_files)
    configs = {name: data.decode("utf-8", "replace") for name, data in found.items()}
    patterns = runner.patterns(configs)
    listed = sandbox.run(_LIST, timeout_s=task.grading_timeout_s).output.splitlines()
    paths = sorted(path for path in map(posixpath.normpath, listed) if _is_test(path, patterns))
    if len(paths) > _MAX_FILES:
        paths = sorted(set(paths) & set(runner.files(task)))
    report = runner.run(sandbox, task, tuple(paths), timeout_s=task.grading_timeout_s)
    if not paths or report is None or not report.ended:
        return {}
    ran = (TestStatus.PASSED, TestStatus.FAILED, TestStatus.ERROR)
    return {test: status for test, status in report.statuses.items() if status in ran}


def _is_test(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(f"/{path}", f"*{p}" if "/" in p else f"*/{p}") for p in patterns)


def _num_passed(statuses: Mapping[str, TestStatus]) -> int:
    return sum(status is TestStatus.PASSED for status in statuses.values())
