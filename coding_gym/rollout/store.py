"""Trajectories as JSON lines."""

import json
from collections.abc import Iterator
from pathlib import Path

from coding_gym.errors import InvalidArgumentError
from coding_gym.trajectory import Trajectory


def append_trajectory(path: str | Path, trajectory: Trajectory) -> None:
    """Adds one line to a JSONL file, in one write, making folders as needed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(trajectory.to_json()) + "\n")


def read_trajectories(path: str | Path) -> Iterator[Trajectory]:
    """Yields the trajectories of a JSONL file.

    Raises:
        InvalidArgumentError: A line is not a trajectory; the message names it.
    """
    with Path(path).open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield Trajectory.from_json(json.loads(line))
            except (ValueError, TypeError, KeyError) as problem:
                raise InvalidArgumentError(
                    f"{path} line {number} is not a trajectory: {problem!r}"
                ) from None
