"""A row of SWE-bench's schema, and the message of a refused row."""

import pytest

from coding_gym.errors import InvalidTaskError
from coding_gym.task import Task
from coding_gym.tasks import load_tasks


def row(number: int = 1, **more: object) -> dict[str, object]:
    """A row that loads, with a number in its id and commit; ``more`` are other fields."""
    return {
        "instance_id": f"owner__name-{number}",
        "repo": "owner/name",
        "base_commit": f"{number:040x}",
        "problem_statement": "It is wrong.",
        "FAIL_TO_PASS": ["t.py::test_a"],
    } | more


def loaded(row: object, **options: object) -> Task:
    """The task of one row."""
    (task,) = load_tasks([row], **options)
    return task


def refusal(source: object, **options: object) -> str:
    """Returns the message that refuses a source: one line."""
    with pytest.raises(InvalidTaskError) as refused:
        load_tasks(source, **options)
    message = str(refused.value)
    assert "\n" not in message
    return message
