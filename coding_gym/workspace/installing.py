"""Runs install commands: one after the other, into a log, within time limits."""

import logging
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from coding_gym.arguments import positive_seconds
from coding_gym.errors import TemplateError, last_line
from coding_gym.sandbox.protocol import Sandbox

_log = logging.getLogger(__name__)

_TAIL_LINES = 20
_TAIL_CHARS = 4000

_MAX_COMMAND_CHARS = 80  # of a command in an error; the log has all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLimits:
    """How long building a template may take, in seconds.

    Attributes:
        command_s: One install command.
        total_s: All of them together, and one fetch of a repository.
    """

    command_s: float = 1800.0
    total_s: float = 3600.0

    def __post_init__(self) -> None:
        positive_seconds("install_timeout_s", self.command_s)
        positive_seconds("build_timeout_s", self.total_s)


@dataclass
class Installation:
    """Runs the commands of one build.

    Attributes:
        sandbox: Runs them.
        task_id: The task that wants the environment.
        log: The file of their output; its old content is dropped.
        limits: Bounds on their time.
    """

    sandbox: Sandbox
    task_id: str
    log: Path
    limits: BuildLimits

    def __post_init__(self) -> None:
        self._deadline = monotonic() + self.limits.total_s
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("", encoding="utf-8")

    def run(self, command: str, *, timeout_s: float | None = None) -> None:
        """Runs the next command.

        Args:
            command: A shell command.
            timeout_s: Its time limit, where it differs from ``limits``.

        Raises:
            TemplateError: It failed or took too long. The message is one line; the tail of what the
                command printed is a note of the exception.
        """
        _log.info("task %s: %s", self.task_id, command)
        # Before it runs, so that the log of a build that was killed says what it was at.
        self._write(f"$ {command}\n")
        left_s = max(self._deadline - monotonic(), 0.001)
        own_s = timeout_s or self.limits.command_s
        result = self.sandbox.run(command, timeout_s=min(own_s, left_s))
        self._write(f"{result.output}\n[{result.duration_s:.1f} s]\n")
        if not result.ok:
            outcome = "failed"
            if result.timed_out:
                name, limit_s = "install_timeout_s", own_s
                if left_s < own_s:
                    name, limit_s = "build_timeout_s", self.limits.total_s
                outcome = f"took more than {limit_s:g} s ({name})"
            raise self._failure(command, result.output, outcome)

    def _write(self, text: str) -> None:
        with self.log.open("a", encoding="utf-8", errors="replace") as log:
            log.write(text)

    def _failure(self, command: str, output: str, outcome: str) -> TemplateError:
        error = TemplateError(
            f"task {self.task_id}: install command {excerpt(command)!r} {outcome}: "
            f"{last_line(output)}; the log is {self.log}"
        )
        if tail := _tail(output):
            error.add_note(f"the end of the log:\n{tail}")
        return error


def excerpt(command: str) -> str:
    """Returns the beginning of a command, for a message."""
    is_short = len(command) <= _MAX_COMMAND_CHARS
    return command if is_short else f"{command[:_MAX_COMMAND_CHARS]}…"


def _tail(output: str) -> str:
    # Output of a build must not steer the terminal in which it is read.
    lines = ["".join(c if c.isprintable() else " " for c in line) for line in output.splitlines()]
    return "\n".join(lines[-_TAIL_LINES:])[-_TAIL_CHARS:].strip()
