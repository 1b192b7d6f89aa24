"""Episodes kept in a file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

import gymnasium as gym

from coding_gym.arguments import true_or_false
from coding_gym.envs.chain import layers
from coding_gym.errors import InvalidArgumentError
from coding_gym.trajectory import Trajectory
from coding_gym.trajectory_file import append_trajectory
from coding_gym.wrappers.chain import check_order, snapshot_in

if TYPE_CHECKING:
    from coding_gym.episode import Episode

_KEEPS_REWARDS = (
    gym.ObservationWrapper,
    gym.ActionWrapper,
    gym.wrappers.OrderEnforcing,
    gym.wrappers.PassiveEnvChecker,
)


class RecordTrajectory(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Adds every finished episode to a file, as one line of JSON.

    A line is a `coding_gym.Trajectory`, read back by `coding_gym.rollout.read_trajectories`: the
    chat, the sampled token ids and log-probabilities, calls, results, patch, grade, timings, how
    the env was made, and the reward of every turn with its parts as they are at this place in the
    chain of wrappers. It has the hidden tests' names: a record is not for policies.

    Any number of envs, threads and processes may write to one file. A line that cannot be written
    raises: training stops instead of losing data.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not.
        path: The file; made with its folders where it is missing, added to where it exists.
        unfinished: Whether episodes that `reset` or `close` cuts off after their first action
            are kept too, with no stop reason and no grade.
        agent: Name of the agent, for the record.
        model: Name of the model behind it, for the record.
        run_id: Name of the run, for the record.

    Raises:
        InvalidArgumentError: ``path`` cannot be a file.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        path: str | Path,
        unfinished: bool = False,
        *,
        agent: str = "",
        model: str = "",
        run_id: str = "",
    ) -> None:
        core = check_order(RecordTrajectory, env)
        if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
            raise InvalidArgumentError(f"path must name a file, got {path!r}")
        self._path = _usable(path)
        self._unfinished = true_or_false("unfinished", unfinished)
        self._labels: dict[str, Any] = {"agent": agent, "model": model, "run_id": run_id}
        for name, label in self._labels.items():
            if not isinstance(label, str):
                raise InvalidArgumentError(f"{name} must be a name, got {label!r}")
        gym.utils.RecordConstructorArgs.__init__(
            self, path=str(path), unfinished=self._unfinished, **self._labels
        )
        gym.Wrapper.__init__(self, env)
        self._core = core
        self._episode: Episode | None = None  # the one that the rewards are of
        self._rewards: list[tuple[float, dict[str, float]]] = []
        self._num_restored = 0  # rewards that a snapshot brought

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; one that begins at a snapshot has the turns and rewards before it."""
        taken = snapshot_in(options)
        try:
            started = super().reset(seed=seed, options=options)
        finally:
            if self._rewards and self._core.episode is not self._episode:  # else it was refused
                self._record_unfinished()
        self._episode = self._core.episode
        self._labels["seed"] = seed
        self._rewards = list(taken.state_of(self) or ()) if taken is not None else []
        self._num_restored = len(self._rewards)
        return started

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Plays one action.

        Raises:
            MachineryError: The episode has ended and could not be written.
        """
        observation, reward, terminated, truncated, info = super().step(action)
        self._episode = self._core.episode
        parts = {name: float(part) for name, part in info["reward_parts"].items()}
        self._rewards.append((float(reward), parts))
        if terminated or truncated:
            self._record()
        return observation, reward, terminated, truncated, info

    def snapshot_state(self) -> tuple[tuple[float, dict[str, float]], ...]:
        """Returns the rewards of the running episode, for snapshots."""
        return tuple(self._rewards)

    def close(self) -> None:
        """Frees the sandbox; idempotent.

        Raises:
            MachineryError: An unfinished episode was to be kept and could not be written.
        """
        try:
            self._record_unfinished()
        finally:
            super().close()

    def _record_unfinished(self) -> None:
        if self._unfinished and len(self._rewards) > self._num_restored:
            self._record()
        self._rewards = []

    def _record(self) -> None:
        rewards, self._rewards = self._rewards, []  # a failed write is not tried again at close
        assert self._episode is not None  # noqa: S101 - there are rewards of it
        trajectory = replace(self._episode.trajectory(), **self._labels)
        append_trajectory(self._path, with_seen_rewards(trajectory, self.env, rewards))


def with_seen_rewards(
    trajectory: Trajectory,
    env: gym.Env[Any, Any],
    rewards: Sequence[tuple[float, Mapping[str, float]]],
) -> Trajectory:
    """Returns a trajectory with the rewards that an env gave, and the wrappers that shaped them.

    Args:
        trajectory: The core env's, whose rewards are those before all wrappers.
        env: The env with its wrappers.
        rewards: Reward and parts of each of the last turns.
    """
    entries = _reward_wrappers(env)
    settings = {**trajectory.settings, **({"wrappers": entries} if entries else {})}
    return replace(trajectory.with_rewards(rewards), settings=settings)


def _reward_wrappers(env: gym.Env[Any, Any]) -> list[dict[str, Any]]:
    """Returns the wrappers that shape rewards, innermost first, by name and arguments.

    A wrapper of another package has its name alone: it cannot be made again from a file.
    """
    entries: list[dict[str, Any]] = []
    for layer in layers(env):
        kind = type(layer)
        if not isinstance(layer, gym.Wrapper) or isinstance(layer, _KEEPS_REWARDS):
            continue
        if not kind.__module__.startswith("coding_gym.wrappers."):
            entries.append({"name": f"{kind.__module__}:{kind.__qualname__}"})
        elif hasattr(kind, "shaping_weight"):
            kwargs = dict(getattr(layer, "_saved_kwargs", {}))
            entries.append({"name": kind.__name__, "kwargs": kwargs})
    return entries[::-1]


def _usable(path: str | Path) -> Path:
    """Returns where the file is, its folder made; absolute, since a process may change folders."""
    try:
        place = Path(path).expanduser().absolute()
        place.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no such home folder
        said = getattr(error, "strerror", None) or error
        raise InvalidArgumentError(
            f"path must be a file that can be written, got {str(path)!r}: {said}"
        ) from error
    if place.is_dir():
        raise InvalidArgumentError(f"path must be a file, got the folder {str(path)!r}")
    return place
