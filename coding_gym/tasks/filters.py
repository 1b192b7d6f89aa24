"""Filters of tasks by their fields."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from coding_gym.arguments import at_least, hint
from coding_gym.errors import InvalidArgumentError, InvalidTaskError, UnknownTaskError
from coding_gym.task import Task

Wanted = str | Sequence[str] | None
Found = TypeVar("Found", bound="Task | RefusedRow")


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A malformed row, with the fields that filters use; "" for unknown."""

    error: InvalidTaskError
    task_id: str = ""
    repo: str = ""
    language: str = ""
    difficulty: str = ""
    split: str = ""

    @classmethod
    def of(cls, row: Any, error: InvalidTaskError) -> "RefusedRow":
        """Returns the readable fields of a refused row."""
        fields = row if isinstance(row, Mapping) else {}
        keys = ("instance_id", "repo", "language", "difficulty", "split")
        values = (fields.get(key) for key in keys)
        return cls(error, *(value if isinstance(value, str) else "" for value in values))


# The field of `Task` for each filter.
_FIELDS = {
    "task_ids": "task_id",
    "repos": "repo",
    "languages": "language",
    "difficulty": "difficulty",
    "split": "split",
}
_MAX_VALUES = 10  # in an error


def select(tasks: Sequence[Found], filters: Mapping[str, Wanted]) -> tuple[Found, ...]:
    """Returns the tasks that match every filter, in their order.

    Args:
        tasks: The tasks and refused rows. An unknown field of a refused row matches every filter,
            except ``task_ids``.
        filters: The accepted values by name of the filter in `load_tasks`; None accepts all.

    Raises:
        UnknownTaskError: An id does not exist, or a filter matches no task; names the filter.
        InvalidArgumentError: A filter is neither text nor a list of texts.
    """
    chosen = tuple(tasks)
    for name, values in filters.items():
        if values is not None:
            chosen = _apply(chosen, name, _values(name, values))
    return chosen


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


def _apply(tasks: tuple[Found, ...], name: str, ids: tuple[str, ...]) -> tuple[Found, ...]:
    field = _FIELDS[name]
    if name == "task_ids":
        _check_ids(ids, {task.task_id for task in tasks})
    selected = tuple(
        task
        for task in tasks
        if getattr(task, field) in ids
        or (isinstance(task, RefusedRow) and name != "task_ids" and not getattr(task, field))
    )
    if not selected:
        present = sorted({getattr(task, field) for task in tasks})
        raise UnknownTaskError(
            f"{name}={list(ids[:_MAX_VALUES])} matches none of {len(tasks)} tasks; their values "
            f"are {present[:_MAX_VALUES]}"
        )
    return selected


def _values(name: str, wanted: str | Sequence[str]) -> tuple[str, ...]:
    values = (wanted,) if isinstance(wanted, str) else wanted
    if not isinstance(values, Iterable) or not all(isinstance(value, str) for value in values):
        raise InvalidArgumentError(f"{name} must be text or a list of texts, got {wanted!r}")
    return tuple(values)


def _check_ids(task_ids: Iterable[str], known: set[str]) -> None:
    for task_id in task_ids:
        if task_id in known:
            continue
        raise UnknownTaskError(
            f"no task {task_id!r} among the {len(known)} tasks of this source "
            f"(`coding-gym tasks list`); {hint(task_id, sorted(known))}"
        )


def find_task(tasks: Sequence[Task], task_id: str) -> Task:
    """Returns the task of that id.

    Raises:
        UnknownTaskError: No task has the id; names similar ids, and the command that prints all.
    """
    return select(tasks, {"task_ids": task_id})[0]
