"""The tasks that ship with this package, in Python and in other languages."""

import importlib.resources
from collections.abc import Iterator
from pathlib import Path

from coding_gym.tasks.folder import read_folder
from coding_gym.tasks.rows import LocatedRow

BUNDLED, POLYGLOT = "bundled", "polyglot"


def bundled_folder() -> Path:
    """Returns the folder of the bundled tasks; it has a subfolder for each program."""
    return Path(str(importlib.resources.files("coding_gym.tasks") / "bundled"))


def bundled_rows(name: str) -> Iterator[LocatedRow]:
    """Yields the tasks in Python for `BUNDLED`, those in other languages for `POLYGLOT`."""
    for position, task in read_folder(bundled_folder()):
        if (getattr(task, "language", "") == "python") == (name == BUNDLED):
            yield position, task
