"""Selects tasks by id, split and challenge."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from coding_gym.arguments import at_least, hint
from coding_gym.errors import InvalidArgumentError, InvalidTaskError, UnknownTaskError
from coding_gym.task import Task

Wanted = str | Sequence[str] | None
Found = TypeVar("Found", bound="Task | RefusedRow")

_MAX_SPLITS = 10  # in an error


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A malformed row, with its id and its split; "" for unknown."""

    error: InvalidTaskError
    task_id: str = ""
    split: str = ""

    @classmethod
    def of(cls, row: Any, error: InvalidTaskError) -> "RefusedRow":
        """Returns the readable fields of a refused row."""
        fields = row if isinstance(row, Mapping) else {}
        values = (fields.get(key) for key in ("instance_id", "split"))
        return cls(error, *(value if isinstance(value, str) else "" for value in values))


def select(
    tasks: Sequence[Found], task_ids: Wanted = None, split: Wanted = None
) -> tuple[Found, ...]:
    """Returns the tasks of these ids and splits, in their order; None accepts all.

    Args:
        tasks: The tasks and refused rows. A refused row of unknown split is in every split.
        task_ids: The ids; each must exist.
        split: The splits.

    Raises:
        UnknownTaskError: An id does not exist, or no task is in the splits.
        InvalidTaskError: An id does not exist, and a refused row has no readable id.
        InvalidArgumentError: An argument is neither text nor a list of at least one text.
    """
    if task_ids is not None:
        ids, known = _texts("task_ids", task_ids), {task.task_id for task in tasks}
        for missing in (task_id for task_id in ids if task_id not in known):
            for task in tasks:
                if isinstance(task, RefusedRow) and not task.task_id:  # it may be the missing task
                    raise task.error
            raise UnknownTaskError(
                f"no task {missing!r} among the {len(known)} tasks of this source "
                f"(`coding-gym tasks list`); {hint(missing, sorted(known))}"
            )
        tasks = [task for task in tasks if task.task_id in ids]
    if split is not None:
        splits, present = _texts("split", split), sorted({task.split for task in tasks})
        matching = [
            task
            for task in tasks
            if task.split in splits or (isinstance(task, RefusedRow) and not task.split)
        ]
        if not matching:
            raise UnknownTaskError(
                f"split={list(splits)} matches none of {len(tasks)} tasks; their splits are "
                f"{present[:_MAX_SPLITS]}"
            )
        tasks = matching
    return tuple(tasks)


def find_task(tasks: Sequence[Task], task_id: str) -> Task:
    """Returns the task of that id.

    Raises:
        UnknownTaskError: No task has the id; names similar ids, and the command that prints all.
    """
    return select(tasks, task_id)[0]


def challenged(tasks: Sequence[Task], num_bits: int) -> tuple[Task, ...]:
    """Returns the tasks whose row has a plan of this version with at least ``num_bits`` bits.

    Raises:
        InvalidArgumentError: The number is negative or not an integer.
        UnknownTaskError: No task has that many bits.
    """
    from coding_gym.grading import Plan  # imports sandboxes, which importing the package must not

    at_least(0, "min_challenge", num_bits)
    plans = [Plan.from_text(task.grading_plan) for task in tasks]
    selected = tuple(
        task
        for task, plan in zip(tasks, plans, strict=True)
        if plan is not None and plan.num_bits(task.fail_to_pass) >= num_bits
    )
    if not selected:
        raise UnknownTaskError(
            f"min_challenge={num_bits} matches none of {len(tasks)} tasks; {plans.count(None)} "
            "have no plan; `coding-gym tasks plan` writes plans of folders"
        )
    return selected


def _texts(name: str, wanted: str | Sequence[str]) -> tuple[str, ...]:
    values = (wanted,) if isinstance(wanted, str) else wanted
    is_list = isinstance(values, Iterable) and all(isinstance(value, str) for value in values)
    if not is_list or not tuple(values):
        raise InvalidArgumentError(f"{name} must be text or a list of texts, got {wanted!r}")
    return tuple(values)
