"""Runs install commands: one after the other, into a log, within time limits."""

import logging
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, TemplateError, last_line
from coding_gym.sandbox.protocol import Sandbox

_log = logging.getLogger(__name__)

BUILD_TIMEOUT_S = 3600.0
_TAIL_LINES = 20
_TAIL_CHARS = 4000

_MAX_COMMAND_CHARS = 80  # of a command in an error; the log has all of it


@dataclass
class Installation:
    """Runs the commands of one build.

    Attributes:
        sandbox: Runs them.
        task_id: The task that wants the environment.
        log: The file of their output; its old content is dropped.
        timeout_s: How long all of them may take together.
    """

    sandbox: Sandbox
    task_id: str
    log: Path
    timeout_s: float

    def __post_init__(self) -> None:
        self._deadline = monotonic() + self.timeout_s
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("", encoding="utf-8")

    def run(self, command: str) -> None:
        """Runs the next command.

        Args:
            command: A shell command.

        Raises:
            InvalidTaskError: It cannot be passed to a shell.
            TemplateError: It failed, or the time is over. The message is one line; the tail of what
                the command printed is a note of the exception.
        """
        _log.info("task %s: %s", self.task_id, command)
        # Before it runs, so that the log of a build that was killed says what it was at.
        self._write(f"$ {command}\n")
        try:
            left_s = max(self._deadline - monotonic(), 0.001)
            result = self.sandbox.run(command, timeout_s=left_s)
        except InvalidArgumentError as error:
            raise InvalidTaskError(
                f"task {self.task_id}: field 'install_commands' has {_excerpt(command)!r}: {error}"
            ) from error
        self._write(f"{result.output}\n[{result.duration_s:.1f} s]\n")
        if not result.ok:
            late = f"is not done after {self.timeout_s:g} s of the build (build_timeout_s)"
            raise self._failure(command, result.output, late if result.timed_out else "failed")

    def _write(self, text: str) -> None:
        with self.log.open("a", encoding="utf-8", errors="replace") as log:
            log.write(text)

    def _failure(self, command: str, output: str, outcome: str) -> TemplateError:
        error = TemplateError(
            f"task {self.task_id}: install command {_excerpt(command)!r} {outcome}: "
            f"{last_line(output)}; the log is {self.log}"
        )
        if tail := _tail(output):
            error.add_note(f"the end of the log:\n{tail}")
        return error


def _excerpt(command: str) -> str:
    """Returns the beginning of a command, for a message."""
    is_short = len(command) <= _MAX_COMMAND_CHARS
    return command if is_short else f"{command[:_MAX_COMMAND_CHARS]}…"


def _tail(output: str) -> str:
    # Output of a build must not steer the terminal in which it is read.
    lines = ["".join(c if c.isprintable() else " " for c in line) for line in output.splitlines()]
    return "\n".join(lines[-_TAIL_LINES:])[-_TAIL_CHARS:].strip()
