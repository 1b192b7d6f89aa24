"""Loads tasks from every kind of source."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coding_gym.arguments import at_least_one
from coding_gym.errors import InvalidTaskError
from coding_gym.task import Task
from coding_gym.tasks.bundled_tasks import BUNDLED
from coding_gym.tasks.filters import RefusedRow, Wanted, filter_challenged, filter_tasks
from coding_gym.tasks.repositories import Repositories, with_repository
from coding_gym.tasks.usable import check_usable
from coding_gym.text.truncate import first_names

if TYPE_CHECKING:
    from coding_gym.tasks.environments import Environments


def load_tasks(
    source: str | Path | Sequence[Any] = BUNDLED,
    *,
    task_ids: Wanted = None,
    split: Wanted = None,
    limit: int | None = None,
    repositories: Repositories | None = None,
    environments: "Environments | None" = None,
    min_challenge: int | None = None,
    needs_tests: bool = True,
) -> tuple[Task, ...]:
    """Returns the tasks in the order of the source; unchanged files are read once per process.

    Args:
        source: ``"bundled"`` (Python) or ``"polyglot"`` (other languages); a task folder, or a
            folder with task folders at any depth; a folder of Harbor's tasks; a ``.jsonl``,
            ``.parquet`` or ``.json`` file of rows; a folder of ``.jsonl`` and ``.parquet`` files; a
            dataset of the Hugging Face hub as ``owner/name`` or ``owner/name:split``; or a list of
            rows. The format is recognised; see `coding_gym.tasks.sources`.
        task_ids: One id or a list of ids; each must exist.
        split: One split or a list of splits. For a dataset of the hub, only these splits are
            downloaded; the default is ``test``, or the only split.
        limit: Maximum number of tasks.
        repositories: Repositories of the rows: a folder of clones, or paths and URLs by
            ``owner/name``. By default, repositories are cloned from GitHub on first use.
        environments: Fields of environments (interpreter, install commands, image, excluded tests
            …) by task id: a ``.jsonl`` file or a mapping. Tasks without an entry are unchanged.
            ``"swebench"`` uses the tables of SWE-bench's harness; ``"images"`` runs each row in the
            image that its dataset publishes (``coding-gym images pull``).
        min_challenge: Minimum number of bits of a row's challenge plan; other rows are excluded.
            With 6 bits, a forged grade succeeds with a probability of at most 1/64.
        needs_tests: Whether to raise an error for a task whose tests cannot grade a patch.

    Raises:
        UnknownTaskError: The source or an id does not exist, or a filter matches no task.
        InvalidTaskError: A row, folder or entry is malformed, a clone is missing, or the tests of
            a returned task cannot grade a patch.
        InvalidArgumentError: An argument has a wrong type or value.
        MissingDependencyError: The source needs a package that is not installed.
    """
    from coding_gym.tasks.opening import open_shared  # imports pydantic, which is slow

    content = open_shared(source, split)
    selected_tasks = filter_tasks(content.tasks, task_ids, split)
    if min_challenge is not None:
        selected_tasks = filter_challenged(selected_tasks, min_challenge)
    if limit is not None:
        selected_tasks = selected_tasks[: at_least_one("limit", limit)]
    tasks = _accepted_tasks(selected_tasks)
    if repositories is not None:
        tasks = tuple(with_repository(task, repositories) for task in tasks)
    if environments is not None:
        tasks = _with_environments(tasks, environments)
    usable_ids = content.usable if environments is None and repositories is None else set[str]()
    for task in tasks if needs_tests else ():
        if task.task_id not in usable_ids:
            label = f"{content.locations.get(task.task_id, source)} ({task.task_id})"
            check_usable(task, label)
            usable_ids.add(task.task_id)
    return tasks


def _accepted_tasks(tasks: Sequence[Task | RefusedRow]) -> tuple[Task, ...]:
    """Returns the tasks; none may be a refused row.

    Raises:
        InvalidTaskError: A row is refused; the message has the first error and names other rows.
    """
    errors = [str(task.error) for task in tasks if isinstance(task, RefusedRow)]
    if errors:
        positions = first_names([text.partition(": ")[0] for text in errors[1:]])
        more = f"; more rows are refused: {positions}" if positions else ""
        raise InvalidTaskError(errors[0] + more)
    return tuple(task for task in tasks if isinstance(task, Task))


def _with_environments(tasks: tuple[Task, ...], environments: "Environments") -> tuple[Task, ...]:
    from coding_gym.tasks.environments import (
        IMAGES,
        SWE_BENCH_TABLES,
        image_entries,
        read_environments,
        with_environment,
    )

    if environments == SWE_BENCH_TABLES:
        from coding_gym.tasks.recipe_tables import recipe_entries  # late: imports the sandbox

        environments = recipe_entries(tasks)
    elif environments == IMAGES:
        environments = image_entries(tasks)
    entries = read_environments(environments)
    if not any(task.task_id in entries for task in tasks):
        raise InvalidTaskError(
            f"environments must have an entry for one of the {len(tasks)} tasks; the first task is "
            f"{tasks[0].task_id!r}, the first entry {next(iter(entries), None)!r}"
        )
    return tuple(with_environment(task, entries.get(task.task_id)) for task in tasks)
