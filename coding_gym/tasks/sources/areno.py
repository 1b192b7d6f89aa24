"""AReno's coding rows: the whole program inline, and commands that pass after the repair.

These rows have no gold patch and no hidden tests. If a row names tests of pytest, they decide the
grade; otherwise each command is a test: its id is the command, and exit code 0 means passed.

The tests are in the tree, and no patch can change them; see
`coding_gym.grading.runners.output_runner` for the protected files. A row whose command starts the
program to repair, such as ``python calc.py``, therefore needs a ``patch``: the files that it
changes are graded.
"""

from coding_gym.task_row import Row, Texts, row_error, value_of
from coding_gym.tasks.sources.swe_bench import has_pytest_ids


def reads(row: Row) -> bool:
    """Whether a row has AReno's keys."""
    return "files" in row and "test_commands" in row


def to_row(row: Row, where: str) -> Row:
    """Returns a row of AReno in the common schema."""
    commands: tuple[str, ...] = value_of(row, "test_commands", Texts, where, ())
    if not commands or not all(command.strip() for command in commands):
        requirement = "must be a list of at least one shell command"
        raise row_error(row, where, "test_commands", f"{requirement}, got {commands!r:.80}")
    made = {key: value for key, value in row.items() if key != "test_commands"}
    made["visible_test_command"] = " && ".join(commands)
    named = value_of(row, "FAIL_TO_PASS", Texts, where, ())
    if not named or not has_pytest_ids(named):
        made |= {"runner": "command", "FAIL_TO_PASS": commands, "PASS_TO_PASS": ()}
    return made
