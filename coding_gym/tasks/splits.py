"""Splits tasks for training and testing; the same on every machine.

Digests replace random generators, so a split does not depend on the order of the tasks or on
versions of libraries.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from coding_gym.arguments import is_number, unknown_name
from coding_gym.errors import InvalidArgumentError
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
            on other tasks, and the share of test tasks is about `test_fraction`, rounded up to 1 %.
            ``repo``: whole repositories, so no repository is on both sides. ``date``: by
            `Task.created_at`.
        test_fraction: The share of the tasks for testing, above 0 and below 1; unused for ``date``.
        seed: The seed of a split by hash or repository; 0 uses digests of the ids alone.
        cutoff: For ``date``: tasks of this ISO 8601 date or later are for testing.

    Raises:
        UnknownNameError: ``by`` has another value.
        InvalidArgumentError: The share or a date is malformed, or the tasks have only one
            repository.
    """
    if by not in _WAYS:
        raise unknown_name("split method", by, _WAYS)
    if not is_number(test_fraction) or not 0 < test_fraction < 1:
        raise InvalidArgumentError(
            f"test_fraction must be above 0 and below 1, got {test_fraction!r}"
        )
    if (cutoff is None) == (by == "date"):
        raise InvalidArgumentError(f"cutoff and by='date' need each other, got {cutoff!r}, {by!r}")
    if cutoff is not None:
        start = _date("cutoff", cutoff)
        dates = {
            task.task_id: _date(f"created_at of {task.task_id}", task.created_at) for task in tasks
        }
        chosen = {task_id for task_id, date in dates.items() if date >= start}
    elif by == "repo":
        repos = _test_repos(tasks, test_fraction, seed)
        chosen = {task.task_id for task in tasks if task.repo in repos}
    else:
        shares = {task.task_id: _digest(task.task_id, seed) % 100 / 100 for task in tasks}
        chosen = {task_id for task_id, share in shares.items() if share < test_fraction}
    return (
        tuple(replace(task, split="train") for task in tasks if task.task_id not in chosen),
        tuple(replace(task, split="test") for task in tasks if task.task_id in chosen),
    )


def _digest(name: str, seed: int) -> int:
    """Returns a digest as a number; seed 0 does not change it, as in other packages."""
    text = f"{name}\0{seed}" if seed else name
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), 16)


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


def _date(name: str, text: str) -> datetime:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgumentError(f"{name} must be an ISO 8601 date, got {text!r}") from None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
