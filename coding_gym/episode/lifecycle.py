"""The sandbox of an episode: how it is opened, and how what is left in it is graded at the end."""

import logging
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from coding_gym.errors import (
    GradingError,
    InvalidArgumentError,
    MachineryError,
    PatchError,
    SandboxUnavailableError,
    TemplateError,
)
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import WarmStart
from coding_gym.grading import grade as grade_patch
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox, Snapshot, open_sandbox
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import Task
from coding_gym.trajectory import StopReason
from coding_gym.workspace import Template, diff, is_changed, missing_programs

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Context:
    """The open sandbox of one episode; a `coding_gym.tools.ToolContext`.

    Attributes:
        sandbox: Where tools work.
        template: The template of the sandbox.
        command_timeout_s: Seconds that one tool call may take.
        state: The state of the toolset in this episode, JSON values.
    """

    sandbox: Sandbox
    template: Template
    command_timeout_s: float
    state: dict[str, Any] = field(default_factory=dict)

    def is_changed(self) -> bool:
        """Whether the tree differs from the base."""
        try:
            return is_changed(self.sandbox, self.template)
        except PatchError:  # only a changed tree can be too much for a patch
            return True


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


def open_restored(
    template: Template, files: Snapshot, state: Mapping[str, Any], timeout_s: float
) -> Context:
    """Opens a sandbox with the files of a snapshot."""
    # By the backend's own name: "auto" may have chosen it.
    sandbox = open_sandbox(template.spec, backend=files.backend, snapshot=files)
    return Context(sandbox, template, timeout_s, deepcopy(dict(state)))


def open_twice(task_id: str, open_once: Callable[[], Context]) -> tuple[Context | None, str]:
    """Opens a sandbox, with a second attempt where the first one fails.

    Returns:
        The context of the opened sandbox, or None with the error.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an episode ended.

    Attributes:
        stop_reason: Why; our side's failure while ending takes the place of the first reason.
        patch: The change that was graded.
        grade: The verdict; None where our side failed.
        error: The failure of our side, or "".
    """

    stop_reason: StopReason
    patch: Patch = field(default_factory=Patch)
    grade: Grade | None = None
    error: str = ""


def finish(
    task: Task,
    context: Context,
    reason: StopReason,
    *,
    backend: str,
    warm: WarmStart | None = None,
    is_graded: bool = True,
) -> Ending:
    """Ends an episode: takes its patch, frees its sandbox and grades the patch once.

    Args:
        task: The task.
        context: The episode's sandbox; closed.
        reason: Why it ends, which is the policy's or the caller's doing.
        backend: Name of the backend that the grade uses.
        warm: A sandbox for the grade that was opened before; see `coding_gym.grading.start_ahead`.
        is_graded: Whether the hidden tests run; otherwise the grade says that they did not.
    """
    try:
        with context.sandbox as sandbox:
            patch = diff(sandbox, context.template)
    except PatchError as problem:  # the policy made a tree that cannot be put into a patch
        grade = Grade(resolved=False, reason=GradeReason.PATCH_NOT_APPLIED, detail=str(problem))
        return Ending(stop_reason=reason, grade=grade)
    except MachineryError as failure:
        return Ending(stop_reason=StopReason.SANDBOX_ERROR, error=str(failure))
    if not is_graded:
        grade = Grade(resolved=False, reason=GradeReason.NOT_GRADED)
        return Ending(stop_reason=reason, patch=patch, grade=grade)
    try:
        grade = grade_patch(task, context.template, patch, backend=backend, warm=warm)
    except GradingError as failure:
        return Ending(stop_reason=StopReason.GRADING_ERROR, patch=patch, error=str(failure))
    except MachineryError as failure:
        return Ending(stop_reason=StopReason.SANDBOX_ERROR, patch=patch, error=str(failure))
    return Ending(stop_reason=reason, patch=patch, grade=grade)
