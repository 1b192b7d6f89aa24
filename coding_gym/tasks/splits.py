"""Splits tasks for training and testing; a split is the same on every machine.

Splits use digests instead of random generators, so they do not depend on the order of the tasks or
on versions of libraries.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from coding_gym.arguments import is_number, unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.task import Task

_METHODS = ("date", "hash", "repo")


def split_tasks(
    tasks: Sequence[Task],
    by: str = "hash",
    *,
    test_fraction: float = 0.1,
    seed: int = 0,
    cutoff: str | None = None,
) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """Returns the tasks for training and the tasks for testing, each in the order of ``tasks``.

    The ``split`` of each returned task is ``train`` or ``test``.

    Args:
        tasks: The tasks.
        by: ``hash``: by the MD5 digest of each id, modulo 100; the split of a task does not depend
            on other tasks, and the share of test tasks is about `test_fraction`, rounded up to a
            whole percent. ``repo``: by repository, so that no repository is in both splits.
            ``date``: by `Task.created_at`.
        test_fraction: The share of the tasks for testing, above 0 and below 1; unused for ``date``.
        seed: The seed of a split by hash or repository; 0 uses digests of the ids alone.
        cutoff: For ``date``: tasks of this ISO 8601 date or later are for testing.

    Raises:
        UnknownNameError: ``by`` has another value.
        InvalidArgumentError: ``test_fraction`` is out of range, a date is malformed, ``cutoff``
            does not match ``by``, or all tasks have the same repository.
    """
    if by not in _METHODS:
        raise unknown_name("split method", by, _METHODS)
    if not is_number(test_fraction) or not 0 < test_fraction < 1:
        raise InvalidArgumentError(f"test_fraction must be > 0 and < 1, got {test_fraction!r}")
    if (cutoff is None) == (by == "date"):
        raise InvalidArgumentError(
            f"cutoff must be a date for by='date', else None; got {by=}, {cutoff=}"
        )
    if cutoff is not None:
        start = _date("cutoff", cutoff)
        dates = {
            task.task_id: _date(f"created_at of {task.task_id}", task.created_at) for task in tasks
        }
        test_ids = {task_id for task_id, date in dates.items() if date >= start}
    elif by == "repo":
        repos = _test_repos(tasks, test_fraction, seed)
        test_ids = {task.task_id for task in tasks if task.repo in repos}
    else:
        shares = {task.task_id: _digest(task.task_id, seed) % 100 / 100 for task in tasks}
        test_ids = {task_id for task_id, share in shares.items() if share < test_fraction}
    return (
        tuple(replace(task, split="train") for task in tasks if task.task_id not in test_ids),
        tuple(replace(task, split="test") for task in tasks if task.task_id in test_ids),
    )


def _digest(name: str, seed: int) -> int:
    """Returns the MD5 digest of a name and a seed; for seed 0, of the name alone."""
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
    test_repos: set[str] = set()
    num_tasks = 0  # in the test split
    for repo in order[1:]:  # the first repository is always for training
        if not test_repos or abs(num_tasks + sizes[repo] - target) < abs(num_tasks - target):
            test_repos.add(repo)
            num_tasks += sizes[repo]
    return test_repos


def _date(name: str, text: str) -> datetime:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgumentError(f"{name} must be an ISO 8601 date, got {text!r}") from None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
