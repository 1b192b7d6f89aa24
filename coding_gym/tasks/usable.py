"""Checks that the tests of a loaded task can grade a patch."""

import re

from coding_gym.errors import InvalidTaskError, UnknownNameError
from coding_gym.task import Task

_MAX_REASON_CHARS = 400
_SUBTEST = re.compile(r"(?:^|\([\w.]+\) )(\(\w+=.*\))$")  # in unittest's output


def check_usable(task: Task, label: str) -> None:
    """Checks that the tests of a task can grade a patch.

    Args:
        task: The task, with its final environment.
        label: Names the task and its position in errors.

    Raises:
        InvalidTaskError: The task has no expected test, or a test in both lists; its date is
            malformed; its runner is unknown, or cannot run its tests.
    """
    from coding_gym.grading.runners import get_runner  # late: imports the sandbox
    from coding_gym.workspace.history import task_date  # late: imports the sandbox

    try:
        task_date(task)
    except InvalidTaskError as error:
        raise _refusal(label, str(error).removeprefix(f"task {task.task_id}: ")) from None
    if not task.expected_tests:
        message = "field 'FAIL_TO_PASS' or 'PASS_TO_PASS' must name a test"
        raise _refusal(label, message, "; exclude the task with task_ids")
    if ids := set(task.fail_to_pass) & set(task.pass_to_pass):
        message = f"fields 'FAIL_TO_PASS' and 'PASS_TO_PASS' both name {min(ids)!r:.200}"
        remedy = "; remedy: remove the id from one list, or add it to excluded_tests"
        raise _refusal(label, message, remedy)
    try:
        runner = get_runner(task.runner)
    except UnknownNameError as error:
        raise _refusal(label, f"field 'runner': {error}") from None
    problem = runner.problem(task) or _unreadable_id(task)
    if not problem and "" in runner.files(task):
        bad_ids = [test for test in task.expected_tests if test.startswith("::")]
        subject = (
            f"expected test {bad_ids[0]!r}" if bad_ids else f"test_command {task.test_command!r}"
        )
        problem = f"{subject} has an empty file name"
    if problem:
        remedy = "; correct the task, or its entry of environments"
        raise _refusal(label, f"field 'runner' is {task.runner!r}, and {problem}", remedy)


def _unreadable_id(task: Task) -> str:
    """Returns the problem of a test id that can match no reported test; "" for none."""
    for test in task.expected_tests if task.runner != "command" else ():
        if "\n" in test:
            return f"expected test {test!r} has several lines, so its docstring is part of the id"
        is_unittest = task.runner == "swebench" and task.language == "python"
        if is_unittest and (subtest := _SUBTEST.search(test)):
            return f"expected test {test!r} names the subtest {subtest[1]!r}; name the whole test"
    return ""


def _refusal(label: str, message: str, remedy: str = "") -> InvalidTaskError:
    excerpt = message if len(message) <= _MAX_REASON_CHARS else f"{message[:_MAX_REASON_CHARS]}…"
    return InvalidTaskError(f"{label}: {excerpt}{remedy}")
