"""Runs the install commands of a build within a time limit, and writes their output to a log."""

import logging
from pathlib import Path
from time import monotonic

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, TemplateError
from coding_gym.program_output import error_line
from coding_gym.sandbox.protocol import Sandbox

_log = logging.getLogger(__name__)

BUILD_TIMEOUT_S = 3600.0
_MAX_COMMAND_CHARS = 80  # in an error message; the log has the whole command


class Installation:
    """Runs the install commands of one build.

    Args:
        sandbox: Runs the commands.
        task_id: The id of the task, for messages.
        log: The file for the commands and their output; its old content is discarded.
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
        """Runs one install command, and appends its output to the log.

        Args:
            command: A shell command.

        Raises:
            InvalidTaskError: The command has a NUL or is too long.
            TemplateError: The command failed or exceeded the time limit; the message is one line.
        """
        _log.info("task %s: running install command: %s", self._task_id, command)
        # Before the run, so that the log of a killed build ends with the command that ran.
        self._write(f"$ {command}\n")
        try:
            remaining_s = max(self._deadline - monotonic(), 0.001)
            result = self._sandbox.run(command, timeout_s=remaining_s)
        except InvalidArgumentError as error:
            raise InvalidTaskError(
                f"task {self._task_id}: field 'install_commands' has {_excerpt(command)!r}: {error}"
            ) from error
        self._write(f"{result.output}\n[{result.duration_s:.1f} s]\n")
        if not result.ok:
            timeout = f"did not end within {self._timeout_s:g} s (build_timeout_s)"
            line = error_line(result.output)
            raise TemplateError(
                f"task {self._task_id}: install command {_excerpt(command)!r} "
                f"{timeout if result.timed_out else 'failed'}: {line}; the log is {self._log}"
            )

    def _write(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8", errors="replace") as log:
            log.write(text)


def _excerpt(command: str) -> str:
    is_short = len(command) <= _MAX_COMMAND_CHARS
    return command if is_short else f"{command[:_MAX_COMMAND_CHARS]}…"
