"""The one way to get tasks, whatever they are kept in."""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, UnknownTaskError
from coding_gym.task import Task
from coding_gym.tasks.bundled_tasks import read_bundled
from coding_gym.tasks.environments import Environments, read_environments, with_environment
from coding_gym.tasks.filters import Wanted, first, select
from coding_gym.tasks.folder import MANIFEST, read_folder, read_task
from coding_gym.tasks.repositories import Repositories, with_repository
from coding_gym.tasks.rows import read_file, read_rows

BUNDLED = "bundled"


def load_tasks(
    source: str | Path | Sequence[Any] = BUNDLED,
    *,
    task_ids: Wanted = None,
    repos: Wanted = None,
    languages: Wanted = None,
    difficulty: Wanted = None,
    split: Wanted = None,
    limit: int | None = None,
    repositories: Repositories | None = None,
    environments: Environments | None = None,
) -> tuple[Task, ...]:
    """Returns the tasks of a source, in its order.

    Args:
        source: ``"bundled"``; a task folder, or a folder of such at any depth; a ``.jsonl``,
            ``.json`` or ``.parquet`` file of SWE-bench rows; or a list of such rows.
        task_ids: Only these ids; each must exist. Here and below one text means a list of one.
        repos: Only these repositories or programs.
        languages: Only these languages.
        difficulty: Only these labels.
        split: Only these splits.
        limit: At most this many, the first ones.
        repositories: Where rows' repositories lie: a folder of clones, or paths and URLs by
            ``owner/name``. Without it they are cloned from GitHub when first used.
        environments: Interpreter, install commands, visible test command and tests to leave out by
            task id: a ``.jsonl`` file or a mapping. Tasks without an entry stay as they are.

    Raises:
        UnknownTaskError: No such source or id, or a filter leaves no task.
        InvalidTaskError: A row, folder or entry is malformed, or a clone is missing.
        InvalidArgumentError: Another argument cannot work.
        MissingDependencyError: The source needs a package that is not installed.
    """
    filters = {
        "task_ids": task_ids,
        "repos": repos,
        "languages": languages,
        "difficulty": difficulty,
        "split": split,
    }
    tasks = first(select(_read(source), filters), limit)
    if repositories is not None:
        tasks = tuple(with_repository(task, repositories) for task in tasks)
    if environments is not None:
        entries = read_environments(environments)
        if not any(task.task_id in entries for task in tasks):
            raise InvalidTaskError(
                f"environments has no entry for any of the {len(tasks)} tasks, the first of which "
                f"is {tasks[0].task_id!r}; its first id is {next(iter(entries), None)!r}"
            )
        tasks = tuple(with_environment(task, entries.get(task.task_id)) for task in tasks)
    return tasks


def _read(source: str | Path | Sequence[Any]) -> tuple[Task, ...]:
    if source == BUNDLED:
        return read_bundled()
    if not isinstance(source, str | Path):
        if not isinstance(source, list | tuple):
            raise InvalidArgumentError(
                "tasks must be a source's name, a path or a list of rows, "
                f"got {type(source).__name__}"
            )
        return _unique(read_rows(source), "the list of rows")
    path = Path(source).expanduser()
    if path.is_dir():
        return _unique(read_folder(path), str(path))
    if path.name == MANIFEST and path.is_file():
        return (read_task(path.parent),)
    if path.is_file():
        return _unique(read_file(path), str(path))
    close = difflib.get_close_matches(str(source), [BUNDLED], n=1, cutoff=0.5)
    raise UnknownTaskError(
        f"no task source {str(source)!r}; "
        + (f"did you mean {close[0]!r}? " if close else "")
        + f"give {BUNDLED!r}, a folder of tasks, or a .jsonl, .json or .parquet file"
    )


def _unique(found: Iterable[tuple[str, Task]], source: str) -> tuple[Task, ...]:
    places: dict[str, str] = {}
    tasks = []
    for where, task in found:
        if task.task_id in places:
            raise InvalidTaskError(
                f"{where}: field 'instance_id' must be unique, but {task.task_id!r} is already in "
                f"{places[task.task_id]}"
            )
        places[task.task_id] = where
        tasks.append(task)
    if not tasks:
        raise InvalidTaskError(f"{source} holds no tasks")
    return tuple(tasks)
