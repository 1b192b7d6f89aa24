"""Runs the install commands of a build within a time limit, and writes their output to a log."""

import logging
from collections.abc import Iterable
from pathlib import Path
from time import monotonic

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, TemplateError
from coding_gym.program_output import error_line
from coding_gym.sandbox.protocol import Sandbox

_log = logging.getLogger(__name__)

BUILD_TIMEOUT_S = 3600.0
_MAX_COMMAND_CHARS = 80  # in an error message; the log has the whole command


def install(
    sandbox: Sandbox, commands: Iterable[str], *, owner: str, log: Path, timeout_s: float
) -> None:
    """Runs the install commands of one build.

    Args:
        sandbox: Runs the commands.
        commands: Shell commands.
        owner: The task or harness, such as ``"task one"``, for messages.
        log: The file for the commands and their output; its old content is discarded.
        timeout_s: Time limit of all commands together, in seconds.

    Raises:
        InvalidTaskError: A command has a NUL or is too long.
        TemplateError: A command failed or exceeded the time limit; the message is one line.
    """
    deadline = monotonic() + timeout_s
    log.parent.mkdir(parents=True, exist_ok=True)
    # Written line by line, so that the log of a killed build ends with the command that ran.
    with log.open("w", encoding="utf-8", errors="replace", buffering=1) as file:
        for command in commands:
            _log.info("%s: running install command: %s", owner, command)
            file.write(f"$ {command}\n")
            excerpt = command[:_MAX_COMMAND_CHARS] + "…" * (len(command) > _MAX_COMMAND_CHARS)
            try:
                result = sandbox.run(command, timeout_s=max(deadline - monotonic(), 0.001))
            except InvalidArgumentError as error:
                raise InvalidTaskError(
                    f"{owner}: field 'install_commands' has {excerpt!r}: {error}"
                ) from error
            file.write(f"{result.output}\n[{result.duration_s:.1f} s]\n")
            if not result.ok:
                timeout = f"did not end within {timeout_s:g} s (build_timeout_s)"
                raise TemplateError(
                    f"{owner}: install command {excerpt!r} "
                    f"{timeout if result.timed_out else 'failed'}: {error_line(result.output)}; "
                    f"the log is {log}"
                )
