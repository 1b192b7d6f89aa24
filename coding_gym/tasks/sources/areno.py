"""Reads AReno's coding rows, which contain all files of the program and commands that test it.

These rows have no gold patch and no ``test_patch``. If a row names pytest tests, these tests decide
the grade; otherwise each command is a test: its id is the command, and exit code 0 means passed.

The tests are in the tree, and no patch can change them; see
`coding_gym.grading.runners.output_runner` for the protected files. A row whose command starts the
program to repair, such as ``python calc.py``, therefore needs a ``patch``: only the files that this
patch changes are graded.
"""

from coding_gym.tasks.sources.swe_bench import has_pytest_ids
from coding_gym.tasks.task_row import Row, Texts, row_error, value_of


def reads(row: Row) -> bool:
    """Returns whether a row has AReno's keys."""
    return "files" in row and "test_commands" in row


def to_row(row: Row, position: str) -> Row:
    """Returns a row of AReno in the common schema."""
    commands: tuple[str, ...] = value_of(row, "test_commands", Texts, position, ())
    if not commands or not all(command.strip() for command in commands):
        requirement = "must be a list of at least one shell command"
        raise row_error(row, position, "test_commands", f"{requirement}, got {commands!r:.80}")
    converted_row = {key: value for key, value in row.items() if key != "test_commands"}
    converted_row["visible_test_command"] = " && ".join(commands)
    test_ids = value_of(row, "FAIL_TO_PASS", Texts, position, ())
    if not test_ids or not has_pytest_ids(test_ids):
        converted_row |= {"runner": "command", "FAIL_TO_PASS": commands, "PASS_TO_PASS": ()}
    return converted_row
