"""All cheating patches, and one cheat of each mechanism.

The fast tests use the cheats in `MECHANISMS`, the slow tests use all cheats.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from forgeries import FORGERIES
from grading_fixtures import BASE, Changes
from in_process import INSIDE
from side_files import OUTSIDE

SOURCE = BASE["cart.py"]


def _in_source(codes: Mapping[str, str]) -> dict[str, Changes]:
    """Returns cheats that append code to the unrepaired source."""
    return {name: {"cart.py": f"{SOURCE}\n\n{code}"} for name, code in codes.items()}


# By name: changes of the tree in `grading_fixtures` that repair nothing. Side files come with a
# harmless change of the source, because a patch of side files alone is empty.
SIDE_FILES: dict[str, Changes] = {
    name: {"cart.py": f"{SOURCE}\n\nVERSION = 2\n", **files} for name, files in OUTSIDE.items()
}
IN_PROCESS = _in_source(INSIDE)
FORGED = _in_source(FORGERIES)
PATCHES = SIDE_FILES | IN_PROCESS | FORGED

# The name of one cheat by its mechanism; it is in `PATCHES`, `EPISODES` or `COMMANDED`.
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
