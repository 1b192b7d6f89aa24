"""Snapshots of an env with its wrappers; they are restored in this env or in another one."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium as gym
import numpy as np

from coding_gym.errors import InvalidArgumentError

if TYPE_CHECKING:  # the package is imported without its sandboxes
    from coding_gym.envs.coding_repair import CodingRepairEnv
    from coding_gym.episode import EpisodeConfig, EpisodeSnapshot
    from coding_gym.task import Task
    from coding_gym.tasks import Sampler

ObsType = TypeVar("ObsType")
ActType = TypeVar("ActType")

# Gymnasium's wrappers without a state that a snapshot needs, but for those of arrays as actions.
_STATELESS = {
    *("ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch"),
    *("RepeatAction", "TransformAction", "ClipReward", "TransformReward"),
    *("DiscretizeObservation", "DtypeObservation", "FilterObservation", "FlattenObservation"),
    *("RescaleObservation", "ReshapeObservation", "TransformObservation"),
    *("OrderEnforcing", "PassiveEnvChecker"),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnvSnapshot:
    """The state of an env and its wrappers at one time.

    It holds no sandbox, and lives as long as it is kept; `save` writes it to a file.
    ``reset(options={"snapshot": it})`` begins an episode there in any env, wrapped or not, of an
    equal config, and in all or some envs of a vector env; `restore` also continues the sequence of
    tasks.

    Attributes:
        episode: The running episode.
        config: The settings of the episode, and the tasks that the sampler chooses from.
        sampler: How far it is in its sequence of tasks; None where the tasks are not known.
        seed: The last seed of the env.
        np_random: The random generator of the env, which the sampler uses.
        wrappers: The state of wrappers, by the name of their class.
    """

    episode: "EpisodeSnapshot"
    config: "EpisodeConfig" = field(repr=False)
    sampler: "Sampler | None" = field(repr=False)
    seed: int | None = field(repr=False)
    np_random: np.random.Generator = field(repr=False)
    wrappers: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def save(self, path: str | Path) -> None:
        """Writes the snapshot as a tar file, which `load` reads in any process, on any host.

        A file at the path is replaced as a whole. The file holds JSON and the changed files of the
        sandbox; no pickle.

        Raises:
            InvalidArgumentError: The state of a wrapper is no JSON value, or the JSON is too long.
            OSError: The file cannot be written.
        """
        from coding_gym.envs.snapshot_file import save_snapshot  # brings in the sandboxes

        save_snapshot(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, env: gym.Env[Any, Any]) -> "EnvSnapshot":
        """Reads a snapshot for an env, which does not change; `restore` brings the env there.

        Load only files that you trust: a forged one can hold any file of the sandbox, and any
        transcript.

        Args:
            path: A file that `save` wrote.
            env: An env of the same arguments, wrapped alike, that has the task of the snapshot. If
                its other tasks or its sampler differ, the snapshot serves ``reset`` alone.

        Raises:
            InvalidArgumentError: There is no such file, or it is damaged; or the env has other
                settings, another task, or another environment of it.
            TemplateError: The template of the task cannot be built.
            OSError: The file cannot be read.
        """
        from coding_gym.envs.snapshot_file import load_snapshot  # brings in the sandboxes

        return load_snapshot(Path(path), core_env("load", env))

    def check_settings(self, core: "CodingRepairEnv") -> None:
        """Raises InvalidArgumentError unless the episode can continue in this env."""
        task = self.episode.task
        check_equal(settings_of(core.config, task), settings_of(self.config, task))

    def state_of(self, wrapper: gym.Wrapper[Any, Any, Any, Any]) -> Any:
        """Returns what a wrapper of this class remembered, or None where there was none."""
        return self.wrappers.get(type(wrapper).__name__)


def settings_of(config: "EpisodeConfig", task: "Task") -> dict[str, Any]:
    """Returns the settings that must be equal for an episode to continue, as JSON values."""
    settings = {**config.record(task), "toolset": config.toolset, "tokenizer": config.tokenizer}
    return {k: v for k, v in settings.items() if k not in ("tasks", "challenge")}


def check_equal(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Raises InvalidArgumentError for the first setting of an env that an episode has not."""
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            raise InvalidArgumentError(
                f"the episode is of an env with {name}={theirs.get(name)!r}, this one has "
                f"{ours.get(name)!r}; make it with the same arguments, tasks and budgets"
            )


def layers(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """Yields ``env`` and what it wraps, from the outside in."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env


def snapshot(env: gym.Env[Any, Any]) -> EnvSnapshot:
    """Returns a snapshot of a ``CodingRepair-v0`` env with all its wrappers, between two steps.

    Args:
        env: The outermost wrapper, or the env.

    Raises:
        EpisodeError: No episode is running.
        InvalidArgumentError: It is another env, or a wrapper is not known to be safe.
        SandboxError: The sandbox died.
    """
    core = core_env("snapshot", env)
    states: dict[str, Any] = {}
    for layer in layers(env):
        if isinstance(layer, gym.Wrapper) and _remembers(layer):
            name = type(layer).__name__
            if name in states:
                raise InvalidArgumentError(f"a snapshot holds the state of one {name}, got two")
            remembering: Any = layer
            states[name] = remembering.snapshot_state()
    return EnvSnapshot(
        episode=core.episode.snapshot(),
        config=core.episode.config,
        sampler=core.sampler.copy(),
        np_random=deepcopy(core.np_random),
        seed=core.np_random_seed,
        wrappers=states,
    )


def restore(
    env: gym.Env[ObsType, ActType], snapshot: EnvSnapshot
) -> tuple[ObsType, dict[str, Any]]:
    """Brings an env and its wrappers to a snapshot; a running episode is dropped.

    The same actions then give the same results as before, and so do the next episodes.

    Args:
        env: The env of the snapshot, or one that is made and wrapped alike.
        snapshot: The snapshot.

    Returns:
        The observation and info of the snapshot's time.

    Raises:
        InvalidArgumentError: The env has other arguments, tasks or wrappers; nothing has changed.
        SandboxUnavailableError: This machine cannot run the sandbox at all.
    """
    core = core_env("restore", env)
    if not isinstance(snapshot, EnvSnapshot):
        raise InvalidArgumentError(f"restore takes a coding_gym.snapshot, got {snapshot!r:.80}")
    snapshot.check_settings(core)
    sampler = snapshot.sampler
    if (
        sampler is None
        or type(sampler) is not type(core.sampler)
        or snapshot.config.tasks != core.config.tasks
    ):
        raise InvalidArgumentError(
            "the snapshot is of an env with other tasks or another sampler; begin only its "
            'episode by reset(options={"snapshot": ...})'
        )
    observation, info = env.reset(options={"snapshot": snapshot})
    core.sampler, core.np_random = sampler.copy(), deepcopy(snapshot.np_random)
    core._np_random_seed = snapshot.seed
    return observation, info


def core_env(purpose: str, env: gym.Env[Any, Any]) -> "CodingRepairEnv":
    """Returns the `CodingRepairEnv` inside ``env``.

    Args:
        purpose: The function or wrapper that needs it, for the error.
        env: The env, which may be wrapped.

    Raises:
        InvalidArgumentError: The innermost env is another one.
    """
    from coding_gym.envs.coding_repair import CodingRepairEnv  # brings in the sandboxes

    core = getattr(env, "unwrapped", env)
    if not isinstance(core, CodingRepairEnv):
        raise InvalidArgumentError(
            f"{purpose} needs CodingRepair-v0, got {type(core).__name__}; a vector env has methods "
            "of its own"
        )
    return core


def _remembers(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> bool:
    """Whether a wrapper has a state to keep; raises where it is not known."""
    kind = type(wrapper)
    if hasattr(kind, "snapshot_state"):
        return True
    is_known = kind.__module__.startswith("gymnasium.") and kind.__name__ in _STATELESS
    if not is_known and not kind.__module__.startswith("coding_gym.wrappers."):
        raise InvalidArgumentError(
            f"{kind.__name__} may remember what a snapshot would miss; give it a method "
            "snapshot_state (see docs/snapshots.md), or take the snapshot of the env inside it"
        )
    return False
