"""Runs install commands: one after the other, into a log, within time limits."""

import logging
import re
from pathlib import Path
from time import monotonic

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, TemplateError, last_line
from coding_gym.sandbox.protocol import Sandbox

_log = logging.getLogger(__name__)

BUILD_TIMEOUT_S = 3600.0
_ERROR = re.compile(r"\s*(?:ERROR|error|[\w.]+Error): (?!subprocess-exited-with-error)")
_MAX_COMMAND_CHARS = 80  # of a command in an error; the log has the whole command


class Installation:
    """Runs the commands of one build.

    Args:
        sandbox: Runs them.
        task_id: The task of the environment.
        log: The file of their output; its old content is discarded.
        timeout_s: Time limit of all commands together, in seconds.
    """

    def __init__(self, sandbox: Sandbox, task_id: str, log: Path, timeout_s: float) -> None:
        self._sandbox = sandbox
        self._task_id = task_id
        self._log = log
        self._timeout_s = timeout_s
        self._deadline = monotonic() + timeout_s
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")

    def run(self, command: str) -> None:
        """Runs the next command.

        Args:
            command: A shell command.

        Raises:
            InvalidTaskError: The command cannot be passed to a shell.
            TemplateError: The command failed, or the time limit passed. The message is one line.
        """
        _log.info("task %s: %s", self._task_id, command)
        # Written first, so that the log of a killed build ends with the command that ran.
        self._write(f"$ {command}\n")
        try:
            left_s = max(self._deadline - monotonic(), 0.001)
            result = self._sandbox.run(command, timeout_s=left_s)
        except InvalidArgumentError as error:
            raise InvalidTaskError(
                f"task {self._task_id}: field 'install_commands' has {_excerpt(command)!r}: {error}"
            ) from error
        self._write(f"{result.output}\n[{result.duration_s:.1f} s]\n")
        if not result.ok:
            late = f"did not end in {self._timeout_s:g} s (build_timeout_s)"
            raise TemplateError(
                f"task {self._task_id}: install command {_excerpt(command)!r} "
                f"{late if result.timed_out else 'failed'}: {_reason(result.output)}; "
                f"the log is {self._log}"
            )

    def _write(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8", errors="replace") as log:
            log.write(text)


def _reason(output: str) -> str:
    """Returns the last line that names an error; pip prints hints below it."""
    errors = [line for line in output.splitlines() if _ERROR.match(line)]
    return last_line(errors[-1] if errors else output)


def _excerpt(command: str) -> str:
    """Returns the beginning of a command, for a message."""
    is_short = len(command) <= _MAX_COMMAND_CHARS
    return command if is_short else f"{command[:_MAX_COMMAND_CHARS]}…"
