"""Chooses the runner of a row, by the form of its test ids, then by its test command."""

import re
from collections.abc import Iterable

# pytest's own form is "path.py::Class::test[a]", even if another program calls pytest.
_PYTEST_ID = re.compile(r"[^:\n]+\.py::")
# Programs that print one line per test in the form of unittest; Django's log format reads these.
_UNITTEST = re.compile(r"\b(runtests\.py|manage\.py test|python[\d.]* -m unittest)\b")


def how_tests_run(
    ids: Iterable[str], command: str, log_parser: str, tests: str | None = None
) -> dict[str, str]:
    """Returns the fields ``runner``, ``test_command`` and ``test_report`` of a row.

    Args:
        ids: The ids of its hidden tests.
        command: The shell command that runs them; "" if the row has none.
        log_parser: SWE-bench's name of the parser of the output; "" if the row has none.
        tests: The part of the command that starts the tests; by default the whole command.
    """
    # A late import: it loads sandboxes, which importing the package must not do.
    from coding_gym.grading.formats.swebench import FORMATS

    test_ids = tuple(ids)
    tests = command if tests is None else tests
    if not test_ids or has_pytest_ids(test_ids):
        return {"runner": "pytest", "test_command": tests, "test_report": ""}
    if _UNITTEST.search(tests):
        return {"runner": "swebench", "test_command": tests, "test_report": "django"}
    name = log_parser.removeprefix("parse_log_")
    # Other names are those of projects; the runner knows their formats.
    report = name if name in FORMATS else ""
    runner = "swebench" if command else "pytest"
    return {"runner": runner, "test_command": command, "test_report": report}


def has_pytest_ids(ids: Iterable[str]) -> bool:
    """Returns whether all ids have the form of pytest's node ids."""
    return all(_PYTEST_ID.match(test_id) for test_id in ids)
