"""The start of an episode: its sandbox is opened, clean or with the files of a snapshot."""

import logging
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

from coding_gym.episode.context import Context
from coding_gym.episode.limits import Limits
from coding_gym.episode.snapshot import EpisodeSnapshot
from coding_gym.episode.usage import Usage
from coding_gym.errors import (
    InvalidArgumentError,
    MachineryError,
    SandboxUnavailableError,
    TemplateError,
)
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.workspace import Template, missing_programs

_log = logging.getLogger(__name__)


def open_clean(
    template: Callable[[], Template], options: SandboxOptions, timeout_s: float
) -> Context:
    """Opens a sandbox with the base tree.

    Args:
        template: Gives the task's template.
        options: How the sandbox differs from what the template asks for.
        timeout_s: Seconds that one tool call may take.

    Raises:
        InvalidArgumentError: The options name an image that lacks what this package runs in it.
    """
    asked = template()
    options.warn_of_unkept()
    wanted = replace(asked, spec=options.applied(asked.spec))
    sandbox = open_sandbox(wanted.spec, backend=options.name)
    try:
        if options.image and (missing := missing_programs(sandbox)):
            raise InvalidArgumentError(f"the image {options.image!r} {missing}")
    except BaseException:
        sandbox.close()
        raise
    return Context(sandbox, wanted, timeout_s)


def open_restored(snapshot: EpisodeSnapshot, timeout_s: float) -> Context:
    """Opens a sandbox with the files of a snapshot."""
    template, files = snapshot.template, snapshot.files
    # By the backend's own name: "auto" may have chosen it.
    sandbox = open_sandbox(template.spec, backend=files.backend, snapshot=files)
    return Context(sandbox, template, timeout_s, deepcopy(dict(snapshot.tool_state)))


def open_twice(task_id: str, open_once: Callable[[], Context]) -> tuple[Context | None, str]:
    """Opens a sandbox; where that fails once more, and then no more.

    Returns:
        What was opened, or None with what failed.

    Raises:
        SandboxUnavailableError: This machine cannot run the sandbox at all.
    """
    error = ""
    for attempt in ("first", "second"):
        try:
            return open_once(), ""
        except SandboxUnavailableError:
            raise
        except TemplateError as failure:  # would fail the same way, perhaps after half an hour
            error = str(failure)
            break
        except MachineryError as failure:
            _log.info("%s attempt to start %s: %s", attempt, task_id, failure)
            error = str(failure)
    _log.error("%s could not be started: %s", task_id, error)
    return None, error


def warn_of_prompt(task_id: str, usage: Usage, limits: Limits) -> None:
    """Logs where the prompt alone has spent an episode's tokens."""
    if usage.spent(limits):
        _log.warning(
            "%s: the prompt has %d tokens, of max_tokens=%s with reserve_tokens=%d, so that the "
            "first action will end the episode; raise max_tokens",
            task_id,
            usage.tokens,
            limits.max_tokens,
            limits.reserve_tokens,
        )
