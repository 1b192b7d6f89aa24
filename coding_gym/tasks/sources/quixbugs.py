"""A checkout of QuixBugs (github.com/jkoppel/QuixBugs): 40 short programs, in Python and in Java.

Each program has one wrong line. The tree of a task is the wrong program alone, the hidden tests are
the checkout's own, the gold patch leads to the checkout's corrected program.
"""

from collections.abc import Iterator
from pathlib import Path

from coding_gym.errors import InvalidTaskError
from coding_gym.task import Task
from coding_gym.tasks.sources.kinds import Checkout
from coding_gym.tasks.sources.quixbugs_java import java_task
from coding_gym.tasks.sources.quixbugs_outcomes import JAVA, PYTHON
from coding_gym.tasks.sources.quixbugs_python import python_task

_FOLDERS = ("python_programs", "correct_python_programs", "java_programs", "java_testcases/junit")


def is_checkout(folder: Path) -> bool:
    """Returns whether a folder has QuixBugs' layout."""
    return all((folder / name).is_dir() for name in _FOLDERS)


def read_checkout(folder: Path) -> Iterator[tuple[str, Task]]:
    """Yields (where, task) for each program, the Python ones first, in the order of names.

    Raises:
        InvalidTaskError: A file is missing, or its tests are not those whose outcomes are known.
    """
    for outcomes, task_of, place in (
        (PYTHON, python_task, "python_programs/{}.py"),
        (JAVA, java_task, "java_programs/{}.java"),
    ):
        for name, marks in sorted(outcomes.items()):
            path = folder / place.format(name if task_of is python_task else name.upper())
            try:
                yield str(path), task_of(folder, name, marks)
            except OSError as error:
                raise InvalidTaskError(
                    f"{path}: this checkout of QuixBugs is not whole: {error.filename} cannot be "
                    f"read: {error.strerror}"
                ) from error


QUIXBUGS = Checkout(name="quixbugs", reads=is_checkout, read=read_checkout)
