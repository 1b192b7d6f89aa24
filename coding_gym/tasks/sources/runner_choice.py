"""Which runner fits a row: told from the spelling of its tests' ids, then from its test command."""

import logging
import re
from collections.abc import Iterable

from coding_gym.tasks.left_out import log_once

_log = logging.getLogger(__name__)

# "path.py::Class::test[a]" is pytest's own spelling, whatever program calls pytest.
_PYTEST_ID = re.compile(r"[^:\n]+\.py::")
# Runners that run tests in a process of ours know one command, not what a shell did before it.
_READ_COMMANDS = {
    "pytest": re.compile(r"\b(pytest|py\.test)\b"),
    "django": re.compile(r"\b(runtests\.py|manage\.py test)\b"),
    "unittest": re.compile(r"\bpython[\d.]* -m unittest\b"),
}


def how_tests_run(
    ids: Iterable[str], command: str, log_parser: str, *, where: str
) -> dict[str, str]:
    """Returns the fields of a row that say how its tests run; logs what of it will not.

    Args:
        ids: The ids of its hidden tests.
        command: The shell command that runs them; "" where the row has none.
        log_parser: SWE-bench's name for what reads the output; "" where the row has none.
        where: Names the row in the log.
    """
    # Here, because graders open sandboxes, which importing the package must not import.
    from coding_gym.grading.formats.swebench import FORMATS

    found = tuple(ids)
    lines = [line for line in command.split("\n") if line]
    if not found or has_pytest_ids(found):
        _note_ignored(where, "pytest", lines)
        return {"runner": "pytest", "test_command": command, "test_report": ""}
    for runner in ("django", "unittest"):
        if read := [line for line in lines if _READ_COMMANDS[runner].search(line)]:
            _note_ignored(where, runner, lines)
            return {"runner": runner, "test_command": read[0], "test_report": ""}
    name = log_parser.removeprefix("parse_log_")
    # Others are names of projects, whose format the runner knows.
    report = name if name in FORMATS else ""
    runner = "swebench" if command else "pytest"
    return {"runner": runner, "test_command": command, "test_report": report}


def _note_ignored(where: str, runner: str, lines: list[str]) -> None:
    pattern = _READ_COMMANDS[runner]
    if ignored := tuple(line for line in lines if not pattern.search(line)):
        log_once(
            _log,
            f"runner {runner!r} does not run {len(ignored)} lines of its test script; build in "
            "'install_commands', or choose runner 'swebench', which runs all",
            where,
            ignored,
        )


def has_pytest_ids(ids: Iterable[str]) -> bool:
    """Returns whether all ids are spelt as pytest does."""
    return all(_PYTEST_ID.match(one) for one in ids)
