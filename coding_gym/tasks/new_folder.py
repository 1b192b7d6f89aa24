"""A new task folder: a small, complete task for users to change file by file."""

import re
from pathlib import Path

from coding_gym.errors import InvalidArgumentError
from coding_gym.patch import Patch
from coding_gym.tasks.folder import MANIFEST

_MANIFEST = '''\
# One task: an issue, a program with a bug, and hidden tests that decide whether it is repaired.
# docs/reference/fields-and-runs.md names every field; `coding-gym validate .` checks the task.

# Unique among the tasks that are used together.
id = "{task_id}"

# The issue, as a user of the program writes it. The policy sees only this text: it must state the
# expected behaviour, and should not name the wrong line.
problem_statement = """
Discounts lose a cent

I give 25 % off on Fridays. Today a customer bought two things for 1.99 and 0.99 and the till said
2.23, but three quarters of 2.98 are 2.235, which I round up to 2.24:

    >>> total([199, 99], discount_percent=25)
    223

Sums without a discount are fine.
"""

# Hidden tests that fail with the bug and must pass after the repair. Test many inputs: then a
# repair of only the example in the issue fails.
fail_to_pass = [
    "tests/test_discounts.py::test_half_a_cent_is_rounded_up",
    "tests/test_discounts.py::test_more_than_half_a_cent_is_rounded_up",
]

# Tests that pass with the bug and must still pass: hidden tests, and tests in tree/.
pass_to_pass = [
    "tests/test_discounts.py::test_less_than_half_a_cent_is_rounded_down",
    "tests/test_receipt.py::test_adds_up",
    "tests/test_receipt.py::test_nothing_costs_nothing",
]

# Runs the tests that the policy can see: the tests in tree/.
visible_test_command = "python -m pytest -q tests"

# The following fields are optional.
split = "train"
difficulty = "easy"
created_at = "2024-05-14T09:30:00Z"  # the date of the commit and of all files
grading_timeout_s = 20.0  # time limit of a run of the hidden tests, in seconds

# Commands that install requirements; they run once, with network access.
# interpreter = "3.11"
# install_commands = ["pip install -e .", "pip install pytest"]

# Other languages and test runners: docs/reference/fields-and-runs.md.
# language = "c"
# runner = "tap"
# test_command = "make -s run TEST={{file}}"
'''

_BROKEN = '''\
"""Receipts of a small shop; all amounts are whole cents."""


def total(amounts, discount_percent=0):
    """Returns the sum of the amounts less a discount, to the nearest cent, halves up."""
    return sum(amounts) * (100 - discount_percent) // 100
'''
_FIXED = _BROKEN.replace(
    "return sum(amounts) * (100 - discount_percent) // 100",
    "return (sum(amounts) * (100 - discount_percent) + 50) // 100",
)

_VISIBLE_TESTS = """\
from receipt import total


def test_adds_up():
    assert total([250, 120, 99]) == 469


def test_nothing_costs_nothing():
    assert total([]) == 0
"""

_HIDDEN_TESTS = """\
from receipt import total


def test_half_a_cent_is_rounded_up():
    assert total([199, 99], discount_percent=25) == 224
    assert total([1], discount_percent=50) == 1


def test_more_than_half_a_cent_is_rounded_up():
    assert total([333, 333], discount_percent=5) == 633
    assert total([11], discount_percent=1) == 11


def test_less_than_half_a_cent_is_rounded_down():
    assert total([333, 334], discount_percent=10) == 600
    assert total([7, 8, 4], discount_percent=20) == 15
"""


def write_new_task(folder: Path) -> tuple[Path, ...]:
    """Writes a valid task.

    Args:
        folder: Its folder, created if it does not exist. Its name becomes the id of the task.

    Returns:
        The files, relative to ``folder``.

    Raises:
        InvalidArgumentError: The folder is not empty, or cannot be written to.
    """
    folder = folder.expanduser().resolve()
    task_id = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")
    if not task_id:
        raise InvalidArgumentError(
            f"the name of the folder must have a letter or digit, got {str(folder)!r}"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgumentError(f"{folder} exists already; name a new or empty folder")
    files = {
        MANIFEST: _MANIFEST.format(task_id=task_id),
        "tree/receipt.py": _BROKEN,
        "tree/tests/test_receipt.py": _VISIBLE_TESTS,
        "hidden/tests/test_discounts.py": _HIDDEN_TESTS,
        "gold.patch": Patch.between({"receipt.py": _BROKEN}, {"receipt.py": _FIXED}).text,
    }
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InvalidArgumentError(f"cannot write to {folder}: {problem.strerror}") from None
    return tuple(Path(name) for name in files)
