"""Trajectories as JSON lines, in files that any number of threads and processes append to."""

import fcntl
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, MachineryError
from coding_gym.trajectory import Trajectory

_log = logging.getLogger(__name__)


def append_trajectory(path: str | Path, trajectory: Trajectory) -> None:
    """Adds one line to a JSONL file, making file and folders as needed.

    The file is locked while the line is written, so that lines of several writers never mix. A
    line that cannot be written whole is taken back; one that a killed writer left unfinished is
    closed first, and spoils no other. The line is handed to the operating system and not synced.
    The file system needs locks (``flock``).

    Raises:
        MachineryError: The line cannot be written; the message says why. The file is as before.
    """
    line = json.dumps(trajectory.to_json()).encode() + b"\n"
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                _append(descriptor, line)
            finally:  # by name: a process forked meanwhile has the descriptor too, and the lock
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise MachineryError(
            f"the trajectory of {trajectory.task_id} could not be added to {path}: "
            f"{error.strerror or error}"
        ) from error


def _append(descriptor: int, line: bytes) -> None:
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        line = b"\n" + line
    rest = memoryview(line)
    try:
        while rest:  # a full disk may take a part before it refuses
            rest = rest[os.write(descriptor, rest) :]
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def read_trajectories(path: str | Path) -> Iterator[Trajectory]:
    """Yields the trajectories of a JSONL file, of any version.

    A line that a killed writer left unfinished is skipped with a warning in the log, wherever it
    stands: writers that came later closed it. So are empty lines and lines of NUL characters,
    which some file systems leave after a power failure.

    Raises:
        InvalidArgumentError: The file cannot be read, or a line is not a trajectory; the message
            names it.
    """
    try:
        # `append_trajectory` writes ASCII.
        opened = Path(path).open(encoding="utf-8", errors="replace")  # noqa: SIM115 - closed below
    except OSError as problem:
        raise InvalidArgumentError(f"cannot read {path}: {problem.strerror}") from None
    with opened as file:
        for number, line in enumerate(file, start=1):
            try:
                trajectory = Trajectory.from_json(json.loads(line))
            except (ValueError, RecursionError) as problem:
                is_empty = not line.strip("\0\t\r\n ")
                is_torn = is_empty or line.startswith("{")
                if is_torn and isinstance(problem, json.JSONDecodeError):
                    state = "empty" if is_empty else "unfinished"
                    _log.warning("%s line %d is %s, and was skipped", path, number, state)
                    continue
                raise InvalidArgumentError(
                    f"{path} line {number} is not a trajectory: {problem}"
                ) from None
            yield trajectory
