"""The runner that fits a row, by the spelling of its test ids, then by its test command."""

import re
from collections.abc import Iterable

# "path.py::Class::test[a]" is pytest's own spelling, whatever program calls pytest.
_PYTEST_ID = re.compile(r"[^:\n]+\.py::")
# Programs that print a line for each test as unittest does, which Django's log format reads.
_UNITTEST = re.compile(r"\b(runtests\.py|manage\.py test|python[\d.]* -m unittest)\b")


def how_tests_run(
    ids: Iterable[str], command: str, log_parser: str, tests: str | None = None
) -> dict[str, str]:
    """Returns the fields of a row that say how its tests run.

    Args:
        ids: The ids of its hidden tests.
        command: The shell command that runs them; "" where the row has none.
        log_parser: SWE-bench's name for what reads the output; "" where the row has none.
        tests: The part of the command that starts the tests; all of it by default.
    """
    # Here, because graders open sandboxes, which importing the package must not import.
    from coding_gym.grading.formats.swebench import FORMATS

    test_ids = tuple(ids)
    tests = command if tests is None else tests
    if not test_ids or has_pytest_ids(test_ids):
        return {"runner": "pytest", "test_command": tests, "test_report": ""}
    if _UNITTEST.search(tests):
        return {"runner": "swebench", "test_command": tests, "test_report": "django"}
    name = log_parser.removeprefix("parse_log_")
    # Others are names of projects, whose format the runner knows.
    report = name if name in FORMATS else ""
    runner = "swebench" if command else "pytest"
    return {"runner": runner, "test_command": command, "test_report": report}


def has_pytest_ids(ids: Iterable[str]) -> bool:
    """Returns whether all ids are spelt as pytest does."""
    return all(_PYTEST_ID.match(one) for one in ids)
