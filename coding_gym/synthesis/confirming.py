"""Confirms a new task: the grader must resolve the gold patch, and must not resolve the base."""

from collections.abc import Mapping, MutableSet
from dataclasses import replace
from functools import partial
from typing import Any

from coding_gym.errors import (
    InfrastructureError,
    InvalidTaskError,
    PatchError,
    SandboxUnavailableError,
)
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.patch import NO_REPAIR, Patch
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import FolderTree, Task
from coding_gym.workspace import TemplateStore


def confirm(
    task: Task,
    store: TemplateStore,
    sandbox: str | Mapping[str, Any],
    repaired: MutableSet[tuple[object, ...]],
) -> str:
    """Returns the first problem that the grader finds in a task; "" for none.

    This check is stricter than validation: every pass-to-pass test must pass at base. Earlier steps
    run only the tests that cover the lines of the bug, and the bug can break other tests too.

    Args:
        task: The task.
        store: The store of templates.
        sandbox: The sandbox of gradings, in the form that ``CodingRepair-v0`` takes.
        repaired: Keys of the repaired trees and tests that were graded as resolved; this call adds
            a key. All bugs of a project have the same repaired tree, so only the first gold patch
            is graded.

    Raises:
        SandboxUnavailableError: This machine cannot run the backend.
    """
    options = SandboxOptions.parse(sandbox)
    key: tuple[object, ...] = (task.tree, task.gold_patch, task.expected_tests)
    if isinstance(task.tree, FolderTree):
        folder, bug = task.tree.folder, task.tree.reverse_patch
        if bug == task.gold_patch + task.test_patch:
            key = (folder, *sorted(task.expected_tests))
    try:
        template = store.get(task)
        template = replace(template, spec=options.applied(template.spec))
        check = partial(grade, task, template, backend=options.name, challenge="none")
        if key not in repaired:
            gold = check(Patch(task.gold_patch))
            if not gold.resolved:
                return f"the gold patch does not resolve the task: {gold.detail or gold.reason}"
            repaired.add(key)
        return _base_problem(check(NO_REPAIR))
    except SandboxUnavailableError:
        raise  # every other task would raise the same error
    except (InfrastructureError, InvalidTaskError, PatchError) as error:
        return f"{type(error).__name__}: {error}"


def _base_problem(base: Grade) -> str:
    if base.reason is not GradeReason.TESTS_FAILED:
        return f"the grade of the base is not tests_failed: {base.detail or base.reason}"
    passed = [t for t, status in base.fail_to_pass.items() if status is TestStatus.PASSED]
    failed = [t for t, status in base.pass_to_pass.items() if status is not TestStatus.PASSED]
    if passed:
        return f"a fail-to-pass test passes at base: {passed[0]}"
    return f"a pass-to-pass test fails at base: {failed[0]}" if failed else ""
