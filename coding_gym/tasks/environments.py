"""Adds environments to tasks whose rows do not describe their environment."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.task import GitTree, ImageTree, Task, default_url
from coding_gym.tasks.rows import read_jsonl
from coding_gym.tasks.task_row import EnvironmentRow, parse, row_error, without_excluded_tests

# The path of the project in images of SWE-bench, SWE-Gym and similar datasets.
_TESTBED = "/testbed"

SWE_BENCH_TABLES, IMAGES = "swebench", "images"
"""The names that `load_tasks` accepts as ``environments``."""

Environments = str | Path | Mapping[str, Mapping[str, Any]]


def read_environments(environments: Environments) -> dict[str, EnvironmentRow]:
    """Returns the parsed entries by task id.

    Args:
        environments: A ``.jsonl`` file of objects with the task id as ``instance_id``, or a mapping
            of objects by task id. Other fields are ``interpreter``, ``install_commands``,
            ``image``, ``image_path`` (the tree then comes from the image, unless the row names a
            tree), ``environment_setup_commit``, ``visible_test_command``, ``runner``,
            ``test_command``, ``test_report``, ``grading_timeout_s`` and ``excluded_tests``.

    Raises:
        InvalidTaskError: An entry is malformed, or repeats an id; the message names file, line,
            field and value.
        InvalidArgumentError: The file does not exist.
    """
    entries: dict[str, EnvironmentRow] = {}
    locations: dict[str, str] = {}
    for position, task_id, entry in _raw_entries(environments):
        if not isinstance(entry, Mapping):
            raise InvalidTaskError(f"{position}: must be an object, got {repr(entry)[:80]}")
        if task_id in locations:
            raise InvalidTaskError(
                f"{position}: field 'instance_id' must be unique, but {task_id!r} is already in "
                f"{locations[task_id]}"
            )
        locations[task_id] = position
        fields = {key: value for key, value in entry.items() if key != "instance_id"}
        entries[task_id] = parse(EnvironmentRow, fields, position, is_closed=True)
    return entries


def image_entries(tasks: Iterable[Task]) -> dict[str, dict[str, str]]:
    """Returns a value for ``environments`` of `load_tasks`: tasks run in their published images.

    Raises:
        InvalidTaskError: No task names an image.
    """
    tasks = tuple(tasks)
    entries = {
        task.task_id: {"image": task.image, "image_path": task.image_path or _TESTBED}
        for task in tasks
        if task.image
    }
    if not entries:
        raise InvalidTaskError(
            f"no row names an image; the first task is {tasks[0].task_id!r}; add 'image' and "
            "'image_path' to the rows, or to a file of environments"
        )
    return entries


def with_environment(task: Task, entry: EnvironmentRow | None) -> Task:
    """Returns the task with the fields of ``entry``.

    Excluded tests move from the two lists of expected tests to ``Task.excluded_tests``.

    Raises:
        InvalidTaskError: All fail-to-pass tests are excluded, or a field of the image is wrong.
    """
    if entry is None:
        return task
    values = {key: value for key, value in entry.values.items() if value != ""}
    if entry.image_path:
        values.setdefault("interpreter", "image")
        if isinstance(task.tree, GitTree) and task.tree.repository == default_url(task.repo):
            values["tree"] = ImageTree(task.tree.reverse_patch)
    if entry.install_commands is None and replace(task, **values).is_in_image:
        values["install_commands"] = ()
    excluded_tests = task.excluded_tests + values.get("excluded_tests", ())
    values["excluded_tests"] = tuple(dict.fromkeys(excluded_tests))
    new_task = without_excluded_tests(replace(task, **values), f"task {task.task_id}")
    if problem := new_task.image_problem():
        raise row_error({}, f"task {task.task_id}", *problem)
    return new_task


def _raw_entries(environments: Environments) -> list[tuple[str, str, Any]]:
    if isinstance(environments, Mapping):
        return [(f"environments[{key!r}]", key, value) for key, value in environments.items()]
    path = Path(environments).expanduser()
    if not path.is_file():
        raise InvalidArgumentError(
            "environments must be a .jsonl file, a mapping by task id, "
            f"{SWE_BENCH_TABLES!r} or {IMAGES!r}, got {str(environments)!r}"
        )
    entries = []
    for position, entry in read_jsonl(path):
        task_id = entry.get("instance_id") if isinstance(entry, Mapping) else ""
        if not isinstance(task_id, str):
            raise InvalidTaskError(f"{position}: field 'instance_id' must be text, got {task_id!r}")
        entries.append((position, task_id, entry))
    return entries
