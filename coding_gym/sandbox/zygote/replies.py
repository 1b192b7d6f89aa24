"""What is said of a command that ended."""

import os
import time

from coding_gym.sandbox.zygote.watch import Command, Outcome
from coding_gym.sandbox.zygote.wire import header_text

_TIMEOUT_EXIT_CODE = 124
_OUT_OF_MEMORY_EXIT_CODE = 137
# What there is to say of almost every command, without what making JSON of it costs.
_USUAL = b'{"exit_code":%d,"duration_s":%.6f,"num_bytes":%d,"head_bytes":%d}'

# A header's text and a body.
Reply = tuple[bytes, bytes]


def shell_exit_code(code: int, *, finished: bool) -> int:
    """Returns the exit code that a shell would give.

    Args:
        code: That of the process; minus the signal's number where one ended it.
        finished: Whether it ended within its time; if not, the code is that of ``timeout``.
    """
    if not finished:
        return _TIMEOUT_EXIT_CODE
    return code if code >= 0 else 128 - code


def ended(
    command: Command,
    outcome: Outcome,
    started: float,
    *,
    num_leftovers: int = 0,
    exit_code: int | None = None,
    notice: str = "",
) -> Reply:
    """Describes a command that ran.

    Args:
        command: The command, of which nothing is left that should not be.
        outcome: How the wait for it ended.
        started: When it began, on the clock of ``time.monotonic``.
        num_leftovers: How many processes it left and that were killed.
        exit_code: What its shell said; by default what that ended with.
        notice: A line that follows the output, whatever its bounds.
    """
    head, tail = command.output.parts()
    text = _below(tail or head, notice)
    is_in_time = outcome in (Outcome.ENDED, Outcome.ANSWERED)
    code = _exit_code(command, outcome) if exit_code is None else exit_code
    duration_s = time.monotonic() - started
    num_bytes = command.output.num_bytes + len(text)
    if is_in_time and not num_leftovers and not notice:
        return _USUAL % (code, duration_s, num_bytes, len(head)), head + tail
    header = {
        "exit_code": code,
        "duration_s": duration_s,
        "num_bytes": num_bytes,
        "head_bytes": len(head),
        "num_leftovers": num_leftovers if is_in_time else 0,
        "timed_out": outcome is Outcome.TIMED_OUT,
        "out_of_memory": outcome is Outcome.OUT_OF_MEMORY,
        "shell_lost": bool(notice),
    }
    return header_text(header), head + tail + text


def refused(reason: str, exit_code: int) -> Reply:
    """Answers as bash does for what could not be started."""
    text = f"bash: {reason}\n".encode()
    header = {
        "exit_code": exit_code,
        "duration_s": 0.0,
        "num_bytes": len(text),
        "head_bytes": len(text),
    }
    return header_text(header), text


def failed(error: OSError) -> bytes:
    """Returns the header that says why a file could not be read or written."""
    return header_text({"errno": error.errno or 0, "reason": error.strerror or str(error)})


def _exit_code(command: Command, outcome: Outcome) -> int:
    if outcome is Outcome.OUT_OF_MEMORY:
        return _OUT_OF_MEMORY_EXIT_CODE
    code = os.waitstatus_to_exitcode(command.status or 0)
    return shell_exit_code(code, finished=outcome is not Outcome.TIMED_OUT)


def _below(last: bytes, notice: str) -> bytes:
    """Returns a notice as a line of its own below what was printed last."""
    line_feed = "\n" if notice and last and not last.endswith(b"\n") else ""
    return f"{line_feed}{notice}".encode()
