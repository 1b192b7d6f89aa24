"""What `reset` may be asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from coding_gym.arguments import check_arguments
from coding_gym.envs.snapshot import OPTION, EnvSnapshot, checked
from coding_gym.errors import InvalidArgumentError
from coding_gym.task import Task
from coding_gym.tasks import find_task, load_tasks

_KNOWN = ("task_id", "task", OPTION)


def read_options(
    options: Mapping[str, Any] | None, tasks: Sequence[Task]
) -> Task | EnvSnapshot | None:
    """Returns the task or the moment that `reset` is to begin with; None leaves it to the sampler.

    Args:
        options: At most one of ``task_id``, ``task`` and ``snapshot``.
        tasks: Those of the env.

    Raises:
        InvalidArgumentError, UnknownTaskError, InvalidTaskError: An option cannot be used.
    """
    if options is None:
        return None
    if not isinstance(options, Mapping):
        raise InvalidArgumentError(
            f"reset options are {', '.join(map(repr, _KNOWN))}, got {options!r}"
        )
    check_arguments("reset options", options, _KNOWN)
    if len(options) > 1:
        raise InvalidArgumentError(f"reset takes one of its options, got {', '.join(options)}")
    if OPTION in options:
        return checked(options[OPTION])
    if "task" in options:
        if not isinstance(options["task"], Mapping | Task):
            raise InvalidArgumentError(
                "options['task'] must be a task's fields; for an id use 'task_id', "
                f"got {options['task']!r:.80}"
            )
        return load_tasks([options["task"]])[0]
    if "task_id" in options:
        if not isinstance(options["task_id"], str):
            raise InvalidArgumentError(f"task_id must be a text, got {options['task_id']!r}")
        return find_task(tasks, options["task_id"])
    return None
