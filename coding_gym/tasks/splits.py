"""Dividing tasks for training and testing, and drawing some of them: the same on every machine.

Digests decide, not random generators: no draw depends on the order of the tasks, nor on a version
of a library, and a smaller draw is the beginning of a larger one.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coding_gym.arguments import at_least_one, is_number, unknown_name
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.task import Task

Halves = tuple[tuple[Task, ...], tuple[Task, ...]]
_WAYS = ("date", "hash", "repo")


def split_tasks(
    tasks: Sequence[Task],
    by: str = "hash",
    *,
    test_fraction: float = 0.1,
    seed: int = 0,
    cutoff: str | None = None,
) -> Halves:
    """Returns the tasks for training and those for testing, each in their order.

    Their ``split`` becomes ``train`` or ``test``.

    Args:
        tasks: What to divide.
        by: ``hash``: by the MD5 digest of each id, modulo 100, so that a task stays on its side
            whatever other tasks there are; the share of test tasks is then about `test_fraction`.
            ``repo``: whole repositories, so that no test task is of a project that was trained on.
            ``date``: by `Task.created_at`; the newest are for testing.
        test_fraction: The share of the tasks that are for testing, above 0 and below 1.
        seed: Another seed makes another division by hash or repository; 0 digests ids alone.
        cutoff: For ``date`` in place of a share: tasks of this ISO 8601 date and later are for
            testing.

    Raises:
        UnknownNameError: There is no such way.
        InvalidArgumentError: ``tasks`` holds something else, the share or the date cannot be, or
            the tasks cannot be divided so.
        InvalidTaskError: A task has no date, and ``by`` is ``date``.
    """
    _check_tasks(tasks)
    if by not in _WAYS:
        raise unknown_name("way to split tasks", by, _WAYS)
    _check_share(test_fraction)
    if cutoff is not None and by != "date":
        raise InvalidArgumentError(f"cutoff is for by='date', got by={by!r}")
    if by == "hash":
        chosen = {task.task_id for task in tasks if _share(task.task_id, seed) < test_fraction}
    elif by == "repo":
        repos = _test_repos(tasks, test_fraction, seed)
        chosen = {task.task_id for task in tasks if task.repo in repos}
    else:
        start = _cutoff(tasks, test_fraction) if cutoff is None else _date(cutoff)
        if start is None:
            raise InvalidArgumentError(f"cutoff must be an ISO 8601 date, got {cutoff!r}")
        chosen = {task.task_id for task in tasks if _created(task) >= start}
    return (
        tuple(replace(task, split="train") for task in tasks if task.task_id not in chosen),
        tuple(replace(task, split="test") for task in tasks if task.task_id in chosen),
    )


def sample_tasks(
    tasks: Sequence[Task], n: int, *, seed: int = 0, group_size: int = 1
) -> tuple[Task, ...]:
    """Returns ``n`` different tasks, drawn by the seed alone.

    Args:
        tasks: What to draw from; their order does not matter.
        n: How many.
        seed: Another seed draws others.
        group_size: Each comes so many times in succession, as trainers want that compare attempts
            at one task (GRPO).

    Raises:
        InvalidArgumentError: ``tasks`` holds something else or fewer than ``n``, or a number is
            below 1.
    """
    _check_tasks(tasks)
    at_least_one("n", n)
    at_least_one("group_size", group_size)
    if n > len(tasks):
        raise InvalidArgumentError(f"n must be at most {len(tasks)}, the number of tasks, got {n}")
    drawn = sorted(tasks, key=lambda task: _digest(task.task_id, seed, "sample"))[:n]
    return tuple(task for task in drawn for _ in range(group_size))


def _check_tasks(tasks: Any) -> None:
    if isinstance(tasks, Sequence) and not isinstance(tasks, str):
        others = [one for one in tasks if not isinstance(one, Task)]
        if not others:
            return
        got, way_out = f"one that is {others[0]!r:.80}", "load_tasks(rows) gives them"
    else:
        got = f"{tasks!r:.80}"
        way_out = f"load_tasks({got if isinstance(tasks, str | Path) else '…'}) gives them"
    raise InvalidArgumentError(f"tasks must be Tasks, got {got}; {way_out}")


def _check_share(value: Any) -> None:
    if not is_number(value) or not 0 < value < 1:
        raise InvalidArgumentError(f"test_fraction must be above 0 and below 1, got {value!r}")


def _digest(name: str, seed: int, use: str = "") -> int:
    """Returns a digest as a number; that of the bare name for seed 0, as others divide by it."""
    salt = f"{use}{seed or ''}"
    text = f"{name}\0{salt}" if salt else name
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), 16)


def _share(name: str, seed: int) -> float:
    """Returns a number from 0 to 1 whose first two digits are the digest modulo 100."""
    rest, percent = divmod(_digest(name, seed), 100)
    return (percent + rest % 1_000_000 / 1_000_000) / 100


def _test_repos(tasks: Sequence[Task], test_fraction: float, seed: int) -> set[str]:
    sizes = Counter(task.repo for task in tasks)
    if len(sizes) < 2:
        raise InvalidArgumentError(
            f"by='repo' needs tasks of at least two repositories, got {', '.join(sizes) or 'none'}"
        )
    order = sorted(sizes, key=lambda repo: _digest(repo, seed))
    wanted = test_fraction * len(tasks)
    chosen: set[str] = set()
    taken = 0
    for repo in order[1:]:  # the first is trained on, however large the others are
        if not chosen or abs(taken + sizes[repo] - wanted) < abs(taken - wanted):
            chosen.add(repo)
            taken += sizes[repo]
    return chosen


def _cutoff(tasks: Sequence[Task], test_fraction: float) -> datetime:
    """Returns the date from which on tasks are for testing; those of one date stay together."""
    dates = sorted((_created(task) for task in tasks), reverse=True)
    if len(set(dates)) < 2:
        raise InvalidArgumentError(f"by='date' needs at least two dates, got {len(set(dates))}")
    number = min(max(round(test_fraction * len(dates)), 1), len(dates) - 1)
    start = dates[number - 1]
    return start if start > dates[-1] else min(date for date in dates if date > start)


def _created(task: Task) -> datetime:
    date = _date(task.created_at)
    if date is None:
        raise InvalidTaskError(
            f"task {task.task_id}: field 'created_at' must be an ISO 8601 date to split by date, "
            f"got {task.created_at!r}"
        )
    return date


def _date(text: str) -> datetime | None:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
