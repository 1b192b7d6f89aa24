"""One attempt of another harness at a task: its sandbox, and the grade of what is left in it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from coding_gym.calls import ExecResult
from coding_gym.episode.opening import open_clean
from coding_gym.errors import EpisodeError, InvalidArgumentError, MachineryError, PatchError
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import grade as grade_patch
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.sandbox.protocol import DEFAULT_TIMEOUT_S
from coding_gym.task import Task
from coding_gym.tasks import find_task, load_tasks
from coding_gym.text.truncate import scrub_runner_times
from coding_gym.workspace import Template, TemplateStore, diff

if TYPE_CHECKING:
    from coding_gym.episode.context import Context


class Attempt:
    """A sandbox with a task's base tree, for harnesses that bring their own loop.

    A harness may turn what our side raises into text for its model. Such failures are remembered,
    and `grade` raises them, so that no policy is blamed for them.

    Args:
        task: A task, its row, or the id of a bundled one.
        sandbox: As for ``CodingRepair-v0``.

    Raises:
        UnknownTaskError, InvalidTaskError, InvalidArgumentError, UnknownNameError: An argument
            cannot be used.
    """

    def __init__(
        self,
        task: Task | str | Mapping[str, Any],
        *,
        sandbox: str | Mapping[str, Any] = "auto",
    ) -> None:
        self.task = _task(task)
        self._options = SandboxOptions.parse(sandbox)
        self._template: Template | None = None
        self._context: Context | None = None
        self._patch = Patch()
        self._grade: Grade | None = None
        self._failure: MachineryError | None = None

    def open(self) -> None:
        """Opens a fresh sandbox; one that is open already stays.

        Raises:
            SandboxError, TemplateError: Our side failed.
            InvalidTaskError: The task's tree cannot be made.
        """
        if self._context is not None:
            return
        self._template, self._patch, self._grade, self._failure = None, Patch(), None, None
        with self._remembering():
            store = TemplateStore(self._options.name)
            self._context = open_clean(
                lambda: store.get(self.task), self._options, DEFAULT_TIMEOUT_S
            )
        self._template = self._context.template

    @property
    def sandbox(self) -> Sandbox:
        """The open sandbox; EpisodeError where there is none."""
        return self._opened.sandbox

    @property
    def _opened(self) -> "Context":
        if self._context is None:
            raise EpisodeError("the sandbox is not open; call start() or open() first")
        return self._context

    @contextmanager
    def access(self) -> "Iterator[Context]":
        """Gives what tools may touch, for a while; what fails on our side then is remembered.

        Raises:
            EpisodeError: The sandbox is not open.
        """
        with self._remembering():
            yield self._opened

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        try:
            yield
        except MachineryError as failure:
            self._failure = self._failure or failure  # what comes later comes of the first
            raise

    def run(self, command: str, **options: Any) -> ExecResult:
        """Runs a command as `Sandbox.run` does; how long tests took is set to zero in its output.

        Raises:
            EpisodeError: The sandbox is not open.
            SandboxError: It died.
            InvalidArgumentError: The command cannot be run, as with a NUL byte in it.
        """
        with self.access() as context:
            return _scrubbed(context.sandbox.run(command, **options))

    def is_changed(self) -> bool:
        """Returns whether the working tree differs from the base.

        Raises:
            SandboxError: The sandbox died.
        """
        with self._remembering():
            return self._context is not None and self._context.is_changed()

    def patch(self) -> Patch:
        """Returns the change so far; once the sandbox is closed, the one it was closed with.

        Raises:
            PatchError: The tree cannot be put into a patch (too large, for instance).
            SandboxError: The sandbox died.
        """
        if self._context is not None:
            with self._remembering():
                self._patch = diff(self._context.sandbox, self._context.template)
        return self._patch

    def grade(self) -> Grade:
        """Closes the sandbox and grades its patch in a clean one, by the task's hidden tests.

        The grade names hidden tests: show nothing of it to a policy.

        Raises:
            EpisodeError: No sandbox was open.
            SandboxError, GradingError: Our side failed, in the attempt or in the grading.
        """
        self.close()
        if self._failure is not None:
            raise self._failure
        if self._template is None:
            raise EpisodeError("there is nothing to grade; let the harness play first")
        if self._grade is None:
            backend = self._options.name
            self._grade = grade_patch(self.task, self._template, self._patch, backend=backend)
        return self._grade

    def close(self) -> None:
        """Takes the patch and frees the sandbox; idempotent."""
        context = self._context
        if context is None:
            return
        try:
            with suppress(MachineryError):  # `grade` raises it
                self.patch()
        except PatchError as problem:  # the policy made a tree that cannot be put into a patch
            self._patch = Patch()  # not what an earlier call saw of it
            reason = GradeReason.PATCH_NOT_APPLIED
            self._grade = Grade(resolved=False, reason=reason, detail=str(problem))
        finally:
            self._context = None
            context.sandbox.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _task(task: Task | str | Mapping[str, Any]) -> Task:
    if isinstance(task, Task):
        return task
    if isinstance(task, str):
        return find_task(load_tasks("bundled"), task)
    if isinstance(task, Mapping):
        return load_tasks([task])[0]
    raise InvalidArgumentError(f"task must be a Task, a row or a bundled task's id, got {task!r}")


def _scrubbed(result: ExecResult) -> ExecResult:
    return replace(result, output=scrub_runner_times(result.output))
