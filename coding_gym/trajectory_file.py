"""Trajectories as JSON files of a folder, which any number of threads and processes write to."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from coding_gym.errors import InvalidArgumentError, MachineryError
from coding_gym.trajectory import Trajectory


def write_trajectory(folder: str | Path, trajectory: Trajectory) -> Path:
    """Writes a trajectory as a new file of a folder, which is made where it is missing.

    The file is written under another name and then renamed, so a writer that is killed leaves whole
    files only. The names sort by the time of writing.

    Raises:
        MachineryError: The file cannot be written; the message says why.
    """
    path = Path(folder) / f"{time.time_ns()}-{uuid4().hex[:8]}.json"
    partial = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(trajectory.to_json()), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise MachineryError(
            f"the trajectory of {trajectory.task_id} cannot be written to {folder}: "
            f"{error.strerror or error}"
        ) from error
    return path


def read_trajectories(folder: str | Path) -> Iterator[Trajectory]:
    """Yields the trajectories of a folder, of any version, in the order of their names.

    Raises:
        InvalidArgumentError: There is no such folder, or a file is not a trajectory; the message
            names it.
    """
    if not Path(folder).is_dir():
        raise InvalidArgumentError(f"{folder} is no folder of trajectories")
    for path in sorted(Path(folder).glob("*.json")):
        try:
            yield Trajectory.from_json(json.loads(path.read_bytes()))
        except (ValueError, RecursionError) as problem:
            raise InvalidArgumentError(f"{path} is not a trajectory: {problem}") from None
