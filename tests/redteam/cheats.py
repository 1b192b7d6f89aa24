"""All cheating patches, and one cheat for each mechanism.

The fast tests use the cheats of `MECHANISMS`, the slow tests use all cheats.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from forgeries import FORGERIES
from grading_fixtures import BASE, Changes
from in_process import INSIDE
from side_files import OUTSIDE

from coding_gym.grade import GradeReason


@dataclass(frozen=True)
class Cheat:
    """A change of the cart of `grading_fixtures` that repairs nothing.

    Attributes:
        changes: New content of files as text; None for a deleted file.
        reasons: The reasons that its grade may have.
    """

    changes: Changes
    reasons: tuple[GradeReason, ...]


FAILS = (GradeReason.TESTS_FAILED,)
FORGES = (GradeReason.TESTS_FAILED, GradeReason.TAMPERED)


def _in_source(codes: dict[str, str], reasons: tuple[GradeReason, ...]) -> dict[str, Cheat]:
    """Returns cheats that append code to the unrepaired source."""
    buggy = BASE["cart.py"]
    return {name: Cheat({"cart.py": f"{buggy}\n\n{code}"}, reasons) for name, code in codes.items()}


def _with_harmless(tables: dict[str, dict[str, str | None]]) -> dict[str, Cheat]:
    """Returns cheats that change files; a harmless change of the source makes a patch to grade."""
    source = f"{BASE['cart.py']}\n\nVERSION = 2\n"
    return {name: Cheat({"cart.py": source, **files}, FAILS) for name, files in tables.items()}


SIDE_FILES = _with_harmless(OUTSIDE)
IN_PROCESS = _in_source(INSIDE, FAILS)
FORGED = _in_source(FORGERIES, FORGES)
PATCHES = SIDE_FILES | IN_PROCESS | FORGED

# By mechanism: the name of one cheat, of this module, `EPISODES` or `COMMANDED`.
MECHANISMS = {
    "replaced test files": "a hidden test, guessed",
    "a conftest": "a hook in a conftest",
    "test configuration": "a plug-in by pytest.ini",
    "start-up files of Python": "sitecustomize",
    "a module in front of the test framework": "another pytest",
    "early exit": "exit",
    "printed results": "lines that look like results",
    "skipped tests": "tests that skip",
    "a killed supervisor": "a dead supervisor",
    "changed reports": "reports that say passed",
    "forged records": "an end before the end",
    "emptied tests": "tests that are emptied on disk",
    "objects equal to everything": "values equal to everything",
    "git settings and hooks": "hooks",
    "a search for the gold patch": "a search for the gold patch",
    "files that a test command starts": "an emptied script",
}


def cheat_params(names: Iterable[str]) -> list[Any]:
    """Returns a test parameter for each cheat; only one cheat per mechanism is fast."""
    fast = set(MECHANISMS.values())
    return [
        pytest.param(name, marks=() if name in fast else pytest.mark.slow, id=name)
        for name in names
    ]
