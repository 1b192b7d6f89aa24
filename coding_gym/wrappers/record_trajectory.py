"""A wrapper that records episodes in a folder, and functions that write and read records."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, SupportsFloat
from uuid import uuid4

import gymnasium as gym

from coding_gym.envs.snapshot import core_env, snapshot_in
from coding_gym.errors import InfrastructureError, InvalidArgumentError
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.whole_file import write_whole


class RecordTrajectory(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Writes every finished episode to a folder, as one JSON file.

    A file is a `coding_gym.Trajectory`, which `read_trajectories` reads: the chat, the sampled
    token ids and log-probabilities, calls, results, patch, grade, timings, the arguments of the
    env, and the reward of every turn with its parts. To record shaped rewards, put this wrapper
    around `ShapedReward`. A record contains the names of the hidden tests: never pass it to a
    policy.

    Any number of envs, threads and processes can write to one folder. If a file cannot be written,
    the step raises an exception, so no record is lost silently.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not.
        folder: The folder; created if it does not exist.

    Raises:
        InvalidArgumentError: The innermost env is not ``CodingRepair-v0``.
        OSError: The folder cannot be created.
    """

    def __init__(self, env: gym.Env[Any, Any], folder: str | Path) -> None:
        self._core = core_env("RecordTrajectory", env)
        # Absolute, because a process can change its working directory.
        self._folder = Path(folder).expanduser().absolute()
        self._folder.mkdir(parents=True, exist_ok=True)
        gym.utils.RecordConstructorArgs.__init__(self, folder=str(folder))
        gym.Wrapper.__init__(self, env)
        self._seed: int | None = None
        self._rewards: dict[int, tuple[float, dict[str, float]]] = {}  # by number of the turn

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; after a reset to a snapshot, the record includes its turns."""
        snapshot = snapshot_in(options)
        observation, info = super().reset(seed=seed, options=options)
        self._rewards = {} if snapshot is None else dict(snapshot.state_of(self) or ())
        self._seed = seed
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Plays one action.

        Raises:
            InfrastructureError: The record of the ended episode could not be written.
        """
        observation, reward, terminated, truncated, info = super().step(action)
        parts = {name: float(part) for name, part in info["reward_parts"].items()}
        self._rewards[info["turn"]] = float(reward), parts
        if terminated or truncated:
            self._record()
        return observation, reward, terminated, truncated, info

    def snapshot_state(self) -> tuple[tuple[int, tuple[float, dict[str, float]]], ...]:
        """Returns the rewards of the running episode by turn, for snapshots."""
        return tuple(self._rewards.items())

    def _record(self) -> None:
        trajectory, turns = self._core.episode.trajectory(), list[Turn]()
        for number, turn in enumerate(trajectory.turns, start=1):
            reward, parts = self._rewards.get(number, (turn.reward, turn.reward_parts))
            turns.append(replace(turn, reward=reward, reward_parts=parts))
        write_trajectory(self._folder, replace(trajectory, turns=tuple(turns), seed=self._seed))


def write_trajectory(folder: str | Path, trajectory: Trajectory) -> Path:
    """Writes a trajectory as a new file of a folder, which is created if missing.

    Any number of threads and processes can write to a folder. The order of file names is the order
    of writing.

    Raises:
        InfrastructureError: The file cannot be written; the message has the reason.
    """
    path = Path(folder) / f"{time.time_ns()}-{uuid4().hex[:8]}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(trajectory.to_json()))
    except OSError as error:
        raise InfrastructureError(
            f"the trajectory of {trajectory.task_id} cannot be written to {folder}: "
            f"{error.strerror or error}"
        ) from error
    return path


def read_trajectories(folder: str | Path) -> Iterator[Trajectory]:
    """Yields the trajectories in a folder, also of older versions, in the order of file names.

    Raises:
        InvalidArgumentError: The folder does not exist, or a file is not a trajectory; the message
            names the file.
    """
    if not Path(folder).is_dir():
        raise InvalidArgumentError(f"there is no folder {folder}; use a folder of trajectories")
    for path in sorted(Path(folder).glob("*.json")):
        yield Trajectory.parse(path.read_bytes(), path)
