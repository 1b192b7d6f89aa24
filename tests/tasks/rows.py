"""Rows in SWE-bench's schema, and functions that load rows or return the error."""

import pytest

from coding_gym.errors import InvalidTaskError
from coding_gym.task import Task
from coding_gym.tasks import load_tasks


def row(number: int = 1, **more: object) -> dict[str, object]:
    """Returns a valid row; ``number`` is in its id and commit, ``more`` adds or replaces fields."""
    return {
        "instance_id": f"owner__name-{number}",
        "repo": "owner/name",
        "base_commit": f"{number:040x}",
        "problem_statement": "It is wrong.",
        "FAIL_TO_PASS": ["t.py::test_a"],
    } | more


def loaded(row: object, **options: object) -> Task:
    """Returns the task of one row."""
    (task,) = load_tasks([row], **options)
    return task


def refusal(source: object, **options: object) -> str:
    """Returns the error message of a malformed source, and asserts that it is one line."""
    with pytest.raises(InvalidTaskError) as caught:
        load_tasks(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message
