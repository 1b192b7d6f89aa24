"""What the bridges to other projects' harnesses share: an episode that their loop plays."""

from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from coding_gym.action import Stop
from coding_gym.calls import ExecResult
from coding_gym.episode import Episode, EpisodeFactory
from coding_gym.errors import EpisodeError, GradingError, InvalidArgumentError, SandboxError
from coding_gym.grade import Grade
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.text.truncate import scrub_runner_times
from coding_gym.trajectory import StopReason


class HarnessEnvironment:
    """Runs a harness's commands in an episode's sandbox, and grades what is left in it.

    A harness may turn a failure of our side into text for its model. The episode is lost by it all
    the same, and `grade` raises, so that no policy is blamed.

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
        if not isinstance(task, Task | str | Mapping):
            raise InvalidArgumentError(
                f"task must be a Task, a row or a bundled task's id, got {task!r}"
            )
        is_id = isinstance(task, str)
        self._factory = EpisodeFactory.from_config(
            tasks="bundled" if is_id else [task],
            task_ids=[str(task)] if is_id else None,
            sandbox=sandbox,
        )
        self.task = self._factory.tasks[0]
        self._episode: Episode | None = None

    @property
    def episode(self) -> Episode:
        """The running or last episode; EpisodeError before the first `open`."""
        if self._episode is None:
            raise EpisodeError("there is no episode yet; let the harness play first")
        return self._episode

    def open(self) -> None:
        """Starts an episode at the base tree; the one before it is closed.

        Raises:
            SandboxError: The sandbox could not be opened.
            InvalidTaskError: The task's tree cannot be made.
        """
        self.close()
        self._episode = self._factory.create(self.task)
        self._episode.start()
        if self._episode.error:
            raise SandboxError(self._episode.error)

    def run(self, command: str, **options: Any) -> ExecResult:
        """Runs a command as `Sandbox.run` does; how long tests took is set to zero in its output.

        Raises:
            EpisodeError: No episode is running.
            SandboxError: The sandbox died.
            InvalidArgumentError: The command cannot be run, as with a NUL byte in it.
        """
        with self.episode.access() as context:
            result = context.sandbox.run(command, **options)
        return replace(result, output=scrub_runner_times(result.output))

    def is_changed(self) -> bool:
        """Returns whether the working tree differs from the base.

        Raises:
            EpisodeError: No episode is running.
            SandboxError: The sandbox died.
        """
        with self.episode.access() as context:
            return context.is_changed()

    def patch(self) -> Patch:
        """Returns the change so far, or the graded one; see `Episode.patch`."""
        return self.episode.patch()

    def grade(self) -> Grade:
        """Ends the episode and grades its patch in a clean sandbox, by the task's hidden tests.

        The grade names hidden tests: show nothing of it to a policy.

        Raises:
            EpisodeError: No episode was started, or it was closed before it was graded.
            SandboxError, GradingError: Our side failed, in the episode or in the grading.
        """
        episode = self.episode
        if not episode.ended:
            episode.step(Stop("the harness has finished"))
        if episode.grade is None:
            is_grading = episode.stop_reason is StopReason.GRADING_ERROR
            raise (GradingError if is_grading else SandboxError)(episode.error)
        return episode.grade

    def close(self) -> None:
        """Frees the sandbox; idempotent. What was not graded before cannot be graded any more."""
        if self._episode is not None:
            self._episode.close()

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
