"""Splits tasks for training and testing, and draws samples; the same on every machine.

Both use digests instead of random generators, so they do not depend on the order of the tasks or on
versions of libraries, and a smaller sample is the beginning of a larger sample.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from coding_gym.arguments import at_least_one, is_number, unknown_name
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.task import Task

_WAYS = ("date", "hash", "repo")


def split_tasks(
    tasks: Sequence[Task],
    by: str = "hash",
    *,
    test_fraction: float = 0.1,
    seed: int = 0,
    cutoff: str | None = None,
) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """Returns the tasks for training and the tasks for testing, both in the given order.

    Their ``split`` becomes ``train`` or ``test``.

    Args:
        tasks: The tasks.
        by: ``hash``: by the MD5 digest of each id, modulo 100; the side of a task does not depend
            on other tasks, and the share of test tasks is about `test_fraction`. ``repo``: whole
            repositories, so no repository is on both sides. ``date``: by `Task.created_at`; the
            newest tasks are for testing.
        test_fraction: The share of the tasks for testing, above 0 and below 1.
        seed: The seed of a split by hash or repository; 0 uses digests of the ids alone.
        cutoff: For ``date``, replaces ``test_fraction``: tasks of this ISO 8601 date or later are
            for testing.

    Raises:
        UnknownNameError: ``by`` has another value.
        InvalidArgumentError: ``tasks`` is not a sequence of Task, the share or the date is
            malformed, or the tasks have only one repository or date.
        InvalidTaskError: A task has no date, and ``by`` is ``date``.
    """
    _check_tasks(tasks)
    if by not in _WAYS:
        raise unknown_name("split method", by, _WAYS)
    _check_share(test_fraction)
    if cutoff is not None and by != "date":
        raise InvalidArgumentError(f"cutoff needs by='date', got by={by!r}")
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
    """Returns a sample of ``n`` different tasks.

    Args:
        tasks: The tasks; their order does not matter.
        n: Size of the sample.
        seed: The random seed.
        group_size: Consecutive repeats of each task, for group-based trainers (GRPO).

    Raises:
        InvalidArgumentError: ``tasks`` is not a sequence of at least ``n`` tasks, or a number is
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
    got = f"{tasks!r:.80}"
    if isinstance(tasks, Sequence) and not isinstance(tasks, str):
        others = [task for task in tasks if not isinstance(task, Task)]
        if not others:
            return
        got = f"an element {others[0]!r:.80}"
    raise InvalidArgumentError(
        f"tasks must be a sequence of Task, got {got}; load_tasks(source) returns one"
    )


def _check_share(value: Any) -> None:
    if not is_number(value) or not 0 < value < 1:
        raise InvalidArgumentError(f"test_fraction must be above 0 and below 1, got {value!r}")


def _digest(name: str, seed: int, use: str = "") -> int:
    """Returns a digest as a number; seed 0 does not change it, as in other packages."""
    salt = f"{use}{seed or ''}"
    text = f"{name}\0{salt}" if salt else name
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), 16)


def _share(name: str, seed: int) -> float:
    """Returns a number from 0 to 1.

    It is the digest modulo 100, divided by 100, plus a smaller fraction that breaks ties.
    """
    rest, percent = divmod(_digest(name, seed), 100)
    return (percent + rest % 1_000_000 / 1_000_000) / 100


def _test_repos(tasks: Sequence[Task], test_fraction: float, seed: int) -> set[str]:
    sizes = Counter(task.repo for task in tasks)
    if len(sizes) < 2:
        raise InvalidArgumentError(
            f"by='repo' needs tasks of at least two repositories, got {', '.join(sizes) or 'none'}"
        )
    order = sorted(sizes, key=lambda repo: _digest(repo, seed))
    target = test_fraction * len(tasks)
    chosen: set[str] = set()
    taken = 0
    for repo in order[1:]:  # the first repository is always for training
        if not chosen or abs(taken + sizes[repo] - target) < abs(taken - target):
            chosen.add(repo)
            taken += sizes[repo]
    return chosen


def _cutoff(tasks: Sequence[Task], test_fraction: float) -> datetime:
    """Returns the first date for testing; tasks of one date stay together."""
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
