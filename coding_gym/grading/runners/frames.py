"""Records of a reporter of ours that shares its output with the code under test."""

import json
from collections.abc import Iterable
from typing import Any

from coding_gym.grade import TestStatus
from coding_gym.grading.formats.outcomes import Outcomes
from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.commands import CommandRun

_STATUSES = {str(status): status for status in TestStatus}


def read_frames(run: CommandRun, nonce: str) -> RunReport:
    """Returns what a reporter said in lines of a nonce and a list of four texts.

    The lists are ``["ready"|"end", "", "", ""]``, ``["test", id, status, message]`` and
    ``["class", file or class, "error", message]``. Lines that begin with the nonce and hold
    anything else count as forged, and a test that is reported twice as an error.

    Args:
        run: The run.
        nonce: The secret that the reporter alone was told.
    """
    if run.timed_out:
        return run.cut_short()
    return _report(_records(run.output, nonce), run)


def _records(output: str, nonce: str) -> Iterable[Any]:
    # Not `splitlines`, which knows ends of lines that JSON leaves as they are.
    for line in output.split("\n"):
        if line.startswith(f"{nonce} "):
            try:
                yield json.loads(line.removeprefix(f"{nonce} "))
            except (ValueError, RecursionError):
                yield None


def _report(records: Iterable[Any], run: CommandRun) -> RunReport:
    outcomes = Outcomes(ended=False)
    ready = is_forged = False
    for record in records:
        is_open = not outcomes.ended
        match record:
            case ["test", str(name), str(how), str(said)] if (
                how in _STATUSES and not outcomes.ended
            ):
                outcomes.add(name, _STATUSES[how], said)
            case ["class", str(name), "error", str(said)]:
                outcomes.messages.setdefault(name, " ".join(said.split()))
            case ["ready", "", "", ""] if not ready:
                ready = True
            case ["end", "", "", ""] if is_open:
                outcomes.ended = True
            case _:
                is_forged = True
    return RunReport(
        statuses=outcomes.statuses,
        messages=outcomes.messages,
        ready=ready,
        ended=outcomes.ended,
        is_forged=is_forged,
        tail=run.tail,
    )
