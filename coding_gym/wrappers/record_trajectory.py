"""A wrapper that records episodes in a run folder."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium as gym

from coding_gym.envs.snapshot import core_env, snapshot_in
from coding_gym.run_folder import RunFolder
from coding_gym.trajectory import Turn


class RecordTrajectory(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Writes every finished episode to a run folder, as the next attempt at its task.

    `RunFolder.open` and commands such as ``coding-gym view`` read the folder. A record is a
    `coding_gym.Trajectory`: the chat, sampled token ids and log-probabilities, calls, results,
    patch, grade, timings, settings of the episode (task source, tool format, limits, sandbox,
    grading), and the reward of every turn with its parts. To record shaped rewards, put this
    wrapper around `ShapedReward`. A record names the hidden tests: never pass it to a policy.

    Any number of envs, threads and processes can write to one folder. If a file cannot be written,
    the step raises an exception, so no record is lost silently.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not.
        folder: The folder; created if it does not exist.

    Raises:
        InvalidArgumentError: The innermost env is not ``CodingRepair-v0``, or the folder contains a
            run of ``coding-gym eval``.
        OSError: The folder cannot be created.
    """

    def __init__(self, env: gym.Env[Any, Any], folder: str | Path) -> None:
        self._core = core_env("RecordTrajectory", env)
        # Absolute, because a process can change its working directory.
        self._run = RunFolder.recorder(Path(folder).expanduser().absolute())
        gym.utils.RecordConstructorArgs.__init__(self, folder=str(folder))
        gym.Wrapper.__init__(self, env)
        self._seed: int | None = None
        self._started_at = ""
        self._rewards: dict[int, tuple[float, dict[str, float]]] = {}  # by number of the turn

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; after a reset to a snapshot, the record has the snapshot's turns."""
        snapshot, now = snapshot_in(options), datetime.now(UTC)
        observation, info = super().reset(seed=seed, options=options)
        self._rewards = {} if snapshot is None else dict(snapshot.state_of(self) or ())
        self._seed, self._started_at = seed, now.isoformat(timespec="milliseconds")
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
        trajectory = replace(trajectory, seed=self._seed, started_at=self._started_at)
        self._run.record(replace(trajectory, turns=tuple(turns)))
