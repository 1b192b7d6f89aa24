"""Confirms a new task with the grader: its gold patch resolves it, and its base does not."""

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
    """Returns the first problem that the grader finds in a task, or "".

    This check is stricter than validation: every pass-to-pass test must pass at base. Earlier steps
    run only the tests that cover the lines of the bug, so the bug may break other tests.

    Args:
        task: The task.
        store: The store of its template.
        sandbox: The sandbox of gradings, in the form that ``CodingRepair-v0`` takes.
        repaired: Repaired trees, with their tests, that were graded as resolved; this call can add
            one. All bugs of a project have the same repaired tree, so only the first gold patch is
            graded.

    Raises:
        SandboxUnavailableError: This machine cannot run the backend.
    """
    options = SandboxOptions.parse(sandbox)
    tested: tuple[object, ...] = (task.tree, task.gold_patch, task.expected_tests)
    if isinstance(task.tree, FolderTree):
        folder, bug = task.tree.folder, task.tree.reverse_patch
        if bug == task.gold_patch + task.test_patch:
            tested = (folder, *sorted(task.expected_tests))
    try:
        template = store.get(task)
        template = replace(template, spec=options.applied(template.spec))
        check = partial(grade, task, template, backend=options.name, challenge="none")
        if tested not in repaired:
            gold = check(Patch(task.gold_patch))
            if not gold.resolved:
                return f"the gold patch does not resolve it: {gold.detail or gold.reason}"
            repaired.add(tested)
        return _base_problem(check(NO_REPAIR))
    except SandboxUnavailableError:
        raise  # the same for every task on this machine
    except (InfrastructureError, InvalidTaskError, PatchError) as error:
        return f"{type(error).__name__}: {error}"


def _base_problem(base: Grade) -> str:
    if base.reason is not GradeReason.TESTS_FAILED:
        return f"the grade of the base is not tests_failed: {base.detail or base.reason}"
    passing = [t for t, status in base.fail_to_pass.items() if status is TestStatus.PASSED]
    broken = [t for t, status in base.pass_to_pass.items() if status is not TestStatus.PASSED]
    if passing:
        return f"passes at base: {passing[0]}"
    return f"fails at base: {broken[0]}" if broken else ""
