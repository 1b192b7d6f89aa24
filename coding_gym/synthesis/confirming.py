"""Confirms a new task: the gold patch must resolve it, and the unchanged base must not."""

from functools import partial

from coding_gym.errors import InvalidTaskError
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading import NO_REPAIR, grade
from coding_gym.patch import Patch
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import Task
from coding_gym.workspace import TemplateStore


def confirm(
    task: Task, store: TemplateStore, options: SandboxOptions, *, grades_gold: bool = True
) -> None:
    """Grades the gold patch and the base of a task.

    This check is stricter than validation: every pass-to-pass test must pass at base. Earlier steps
    run only the tests that cover the lines of the bug, and the bug can break other tests too.

    Args:
        task: The task.
        store: The store of templates.
        options: The sandbox of gradings.
        grades_gold: Whether the gold patch is graded too. All bugs of a project have the same
            repaired tree and the same expected tests, so one grade per project is enough.

    Raises:
        InvalidTaskError: The grader finds a problem; the message describes the first problem.
        InfrastructureError: The infrastructure failed.
    """
    template = store.get(task).with_options(options)
    check = partial(grade, task, template, backend=options.name, challenge="none")
    if grades_gold:
        gold = check(Patch(task.gold_patch))
        if not gold.resolved:
            raise InvalidTaskError(
                f"the gold patch does not resolve the task: {gold.detail or gold.reason}"
            )
    if problem := _base_problem(check(NO_REPAIR)):
        raise InvalidTaskError(problem)


def _base_problem(base: Grade) -> str:
    if base.reason is not GradeReason.TESTS_FAILED:
        return f"the grade of the base is not tests_failed: {base.detail or base.reason}"
    passed_tests = [t for t, status in base.fail_to_pass.items() if status is TestStatus.PASSED]
    failed_tests = [t for t, status in base.pass_to_pass.items() if status is not TestStatus.PASSED]
    if passed_tests:
        return f"a fail-to-pass test passes at base: {passed_tests[0]}"
    return f"a pass-to-pass test fails at base: {failed_tests[0]}" if failed_tests else ""
