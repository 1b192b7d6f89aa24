"""Selects tasks by id, split and challenge."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from coding_gym.arguments import at_least, hint
from coding_gym.errors import InvalidArgumentError, InvalidTaskError, UnknownTaskError
from coding_gym.task import Task

Wanted = str | Sequence[str] | None
_Entry = TypeVar("_Entry", bound="Task | RefusedRow")

_MAX_SPLITS = 10  # in an error message


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """The error of a malformed row, with the row's id and split; "" if a field is unreadable."""

    error: InvalidTaskError
    task_id: str = ""
    split: str = ""

    @classmethod
    def of(cls, row: Any, error: InvalidTaskError) -> "RefusedRow":
        """Returns the refusal of a row, with the fields that are readable."""
        fields = row if isinstance(row, Mapping) else {}
        values = fields.get("instance_id") or fields.get("id"), fields.get("split")
        return cls(error, *(value if isinstance(value, str) else "" for value in values))


def filter_tasks(
    tasks: Sequence[_Entry], task_ids: Wanted = None, split: Wanted = None
) -> tuple[_Entry, ...]:
    """Returns the tasks with these ids and splits, in the order of ``tasks``; None selects all.

    Args:
        tasks: The tasks and refused rows. A refused row without a split matches every split.
        task_ids: The ids; each must exist.
        split: The splits.

    Raises:
        UnknownTaskError: An id does not exist, or no task is in the splits.
        InvalidTaskError: An id was not found, but a refused row without an id can be this task.
        InvalidArgumentError: An argument is neither text nor a list of at least one text.
    """
    if task_ids is not None:
        ids, available_ids = _texts("task_ids", task_ids), {task.task_id for task in tasks}
        for missing_id in (task_id for task_id in ids if task_id not in available_ids):
            for task in tasks:
                if isinstance(task, RefusedRow) and not task.task_id:  # can be the missing task
                    raise task.error
            raise UnknownTaskError(
                f"no task {missing_id!r} among the {len(available_ids)} tasks of this source "
                f"(`coding-gym tasks list` prints them); {hint(missing_id, sorted(available_ids))}"
            )
        tasks = [task for task in tasks if task.task_id in ids]
    if split is not None:
        splits, available_splits = _texts("split", split), sorted({task.split for task in tasks})
        matching_tasks = [
            task
            for task in tasks
            if task.split in splits or (isinstance(task, RefusedRow) and not task.split)
        ]
        if not matching_tasks:
            raise UnknownTaskError(
                f"split={list(splits)} matches none of {len(tasks)} tasks; their splits are "
                f"{available_splits[:_MAX_SPLITS]}"
            )
        tasks = matching_tasks
    return tuple(tasks)


def find_task(tasks: Sequence[Task], task_id: str) -> Task:
    """Returns the task with the id ``task_id``.

    Raises:
        UnknownTaskError: No task has this id; the message names similar ids.
    """
    return filter_tasks(tasks, task_id)[0]


def filter_challenged(tasks: Sequence[_Entry], num_bits: int) -> tuple[_Entry, ...]:
    """Returns the tasks with a stored plan of the current version and at least ``num_bits`` bits.

    Refused rows are kept.

    Raises:
        InvalidArgumentError: ``num_bits`` is negative or not an integer.
        UnknownTaskError: No task has this many bits.
    """
    from coding_gym.grading import Plan  # late: imports the sandbox

    at_least(0, "min_challenge", num_bits)
    selected_tasks: list[_Entry] = []
    num_unplanned = 0
    for task in tasks:
        if isinstance(task, RefusedRow):
            selected_tasks.append(task)
        elif (plan := Plan.from_text(task.grading_plan)) is None:
            num_unplanned += 1
        elif plan.challenge.num_bits(task.fail_to_pass) >= num_bits:
            selected_tasks.append(task)
    if not selected_tasks:
        raise UnknownTaskError(
            f"min_challenge={num_bits} matches none of {len(tasks)} tasks; {num_unplanned} have no "
            "plan (coding-gym tasks plan FOLDER writes plans), and the others have fewer bits"
        )
    return tuple(selected_tasks)


def _texts(name: str, argument: str | Sequence[str]) -> tuple[str, ...]:
    values = (argument,) if isinstance(argument, str) else argument
    is_list = isinstance(values, Iterable) and all(isinstance(value, str) for value in values)
    if not is_list or not tuple(values):
        raise InvalidArgumentError(
            f"{name} must be text or a list of at least one text, got {argument!r}"
        )
    return tuple(values)
