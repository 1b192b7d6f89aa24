"""Snapshots of an env with its wrappers, to restore in the same or another env."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zipfile import BadZipFile, ZipFile

import gymnasium as gym
from numpy.random import PCG64

from coding_gym.errors import InvalidArgumentError
from coding_gym.tasks import find_task
from coding_gym.whole_file import whole_file

if TYPE_CHECKING:  # slow to import
    from coding_gym.envs.coding_repair import CodingRepairEnv
    from coding_gym.episode import EpisodeConfig, EpisodeSnapshot
    from coding_gym.task import Task

# A snapshot file is a zip archive with a JSON document, and the changed files of the sandbox in a
# format of the backend; the archive contains their checksums.
_FORMAT = 6
_STATE, _FILES = "env.json", "data"
_JSON_FIELDS = ("settings", "tasks", "sampler", "seed", "np_random", "wrappers")
_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("task_id", "backend", "spec", "tasks"), str),
    **dict.fromkeys(("episode", "settings", "sampler", "np_random", "wrappers"), dict),
    "seed": int | None,
}

ObsType = TypeVar("ObsType")
ActType = TypeVar("ActType")

# Gymnasium's wrappers without state, except wrappers for array actions.
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

    A snapshot has no sandbox and needs no cleanup; `save` writes the snapshot to a file.
    ``reset(options={"snapshot": snapshot})`` continues the episode in any env with an equal
    config, wrapped or not, and in all or some envs of a vector env; `restore` also continues the
    sequence of tasks.

    Attributes:
        episode: The running episode.
        settings: The settings of the episode; see `settings_of`.
        tasks: Digest of the ids of all tasks of the env.
        sampler: Class name and state of the sampler, which has the position in the task sequence.
        seed: The last seed of the env.
        np_random: The state of the random generator of the env, which the sampler uses.
        wrappers: The state of each wrapper, by the name of its class.
    """

    episode: "EpisodeSnapshot"
    settings: Mapping[str, Any] = field(repr=False)
    tasks: str = field(repr=False)
    sampler: Mapping[str, Any] = field(repr=False)
    seed: int | None = field(repr=False)
    np_random: Mapping[str, Any] = field(repr=False)
    wrappers: Mapping[str, Any] = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Writes the snapshot as a zip archive, which `load` reads in any process, on any host.

        An existing file is replaced atomically. The file contains JSON and the changed files of the
        sandbox, but no pickle.

        Raises:
            InvalidArgumentError: The state of a wrapper is not a JSON value.
            OSError: The file cannot be written.
        """
        from coding_gym.sandbox.spec import spec_digest  # slow to import

        for name, wrapper_state in self.wrappers.items():
            try:
                json.dumps(wrapper_state)
            except (TypeError, ValueError) as problem:
                raise InvalidArgumentError(
                    f"the state of {name} cannot be written to a file: {problem}; save a snapshot "
                    f"of the env inside {name}"
                ) from None
        document = {
            "format": _FORMAT,
            "task_id": self.episode.task.task_id,
            "backend": self.episode.files.backend,
            "spec": spec_digest(self.episode.files.spec),
            "episode": self.episode.to_json(),
            **{name: getattr(self, name) for name in _JSON_FIELDS},
        }
        with whole_file(Path(path)) as partial_path, ZipFile(partial_path, "w") as archive:
            archive.writestr(_STATE, json.dumps(document))
            archive.writestr(_FILES, self.episode.files.data)

    @classmethod
    def load(cls, path: str | Path, env: gym.Env[Any, Any]) -> "EnvSnapshot":
        """Reads a snapshot for an env, and leaves the env unchanged; `restore` changes the env.

        Load only files that you trust: a forged snapshot can have any files in the sandbox and any
        transcript.

        Args:
            path: A file that `save` wrote.
            env: An env with the same arguments and wrappers and the task of the snapshot. If the
                other tasks or the sampler differ, only ``reset`` accepts the snapshot.

        Raises:
            UnknownTaskError: The env does not have the task.
            InvalidArgumentError: The file is missing or not a snapshot; or the settings of the env,
                the task or its environment differ.
            TemplateError: The template of the task cannot be built.
            OSError: The file cannot be read.
        """
        from coding_gym.episode import EpisodeSnapshot  # slow to import
        from coding_gym.sandbox import Snapshot
        from coding_gym.sandbox.spec import spec_digest

        core = core_env("load", env)
        document, data = _read_file(Path(path))
        task = find_task(core.config.tasks, document["task_id"])
        check_equal(settings_of(core.config, task), document["settings"])
        spec = core.config.template(task).spec
        if document["spec"] != spec_digest(spec):
            raise InvalidArgumentError(
                f"the snapshot {path} was saved with another Python, image or version of "
                "coding_gym, or other files of the environment; load the snapshot with those"
            )
        files = Snapshot(backend=document["backend"], spec=spec, data=data)
        episode = EpisodeSnapshot.from_json(document["episode"] | {"task": task, "files": files})
        return cls(episode=episode, **{name: document[name] for name in _JSON_FIELDS})

    def state_of(self, wrapper: gym.Wrapper[Any, Any, Any, Any]) -> Any:
        """Returns the saved state of the wrapper's class, or None."""
        return self.wrappers.get(type(wrapper).__name__)


def snapshot_in(options: Any) -> EnvSnapshot | None:
    """Returns the snapshot in the options of a reset, or None; the env checks the options."""
    snapshot = options.get("snapshot") if isinstance(options, Mapping) else None
    return snapshot if isinstance(snapshot, EnvSnapshot) else None


def settings_of(config: "EpisodeConfig", task: "Task") -> dict[str, Any]:
    """Returns the settings that must be equal to continue an episode, as JSON values."""
    settings = {**config.settings(task), "toolset": config.toolset, "tokenizer": config.tokenizer}
    return {name: settings[name] for name in settings if name not in ("tasks", "challenge")}


def check_equal(settings: Mapping[str, Any], recorded: Mapping[str, Any]) -> None:
    """Raises InvalidArgumentError for the first setting of an env that differs from a record."""
    for name in sorted(settings.keys() | recorded.keys()):
        if settings.get(name) != recorded.get(name):
            raise InvalidArgumentError(
                f"the episode has {name}={recorded.get(name)!r}, but this env has "
                f"{settings.get(name)!r}; create the env with the same arguments, tasks and limits"
            )


def layers(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """Yields ``env`` and the envs inside it, the outermost first."""
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
        InvalidArgumentError: The innermost env is not ``CodingRepair-v0``, or a wrapper does not
            save its state.
        SandboxError: The sandbox died.
    """
    core = core_env("snapshot", env)
    states: dict[str, Any] = {}
    for layer in layers(env):
        if isinstance(layer, gym.Wrapper) and _has_state(layer):
            name = type(layer).__name__
            if name in states:
                raise InvalidArgumentError(f"a snapshot saves one {name}, got two; remove one")
            states[name] = layer.snapshot_state()  # type: ignore[attr-defined]
    episode = core.episode.snapshot()
    settings = settings_of(core.episode.config, episode.task)
    return EnvSnapshot(episode=episode, settings=settings, wrappers=states, **sequence_of(core))


def sequence_of(core: "CodingRepairEnv") -> dict[str, Any]:
    """Returns the state of an env's sequence of tasks: fields of `EnvSnapshot` by name."""
    ids = json.dumps([task.task_id for task in core.config.tasks])
    return {
        "tasks": sha256(ids.encode()).hexdigest(),
        "sampler": {"name": type(core.sampler).__name__, "state": core.sampler.state()},
        "seed": core.np_random_seed,
        "np_random": core.np_random.bit_generator.state,
    }


def restore(
    env: gym.Env[ObsType, ActType], snapshot: EnvSnapshot
) -> tuple[ObsType, dict[str, Any]]:
    """Restores an env and its wrappers from a snapshot; a running episode is discarded.

    The same actions then have the same results, also in the next episodes.

    Args:
        env: The env of the snapshot, or an env with the same arguments and wrappers.
        snapshot: The snapshot.

    Returns:
        The observation and info at the time of the snapshot.

    Raises:
        InvalidArgumentError: Arguments, tasks or wrappers of the env differ; the env is unchanged.
        SandboxUnavailableError: This machine cannot run the sandbox at all.
    """
    core = core_env("restore", env)
    if not isinstance(snapshot, EnvSnapshot):
        raise InvalidArgumentError(f"snapshot must be an EnvSnapshot, got {snapshot!r:.80}")
    classes = map(type, layers(env))
    names = sorted(cls.__name__ for cls in classes if hasattr(cls, "snapshot_state"))
    if names != sorted(snapshot.wrappers):
        raise InvalidArgumentError(
            f"the snapshot has the state of the wrappers {sorted(snapshot.wrappers)}, but this env "
            f"has {names}; wrap the env in the same way"
        )
    sequence = sequence_of(core)
    same_sampler = sequence["sampler"]["name"] == snapshot.sampler["name"]
    if sequence["tasks"] != snapshot.tasks or not same_sampler:
        raise InvalidArgumentError(
            "the env of the snapshot has other tasks or another sampler; to continue only the "
            'episode of the snapshot, use reset(options={"snapshot": ...})'
        )
    observation, info = env.reset(options={"snapshot": snapshot})
    core.sampler.set_state(snapshot.sampler["state"])
    core.np_random.bit_generator.state = snapshot.np_random
    core._np_random_seed = snapshot.seed
    return observation, info


def core_env(purpose: str, env: gym.Env[Any, Any]) -> "CodingRepairEnv":
    """Returns the `CodingRepairEnv` inside ``env``.

    Args:
        purpose: Name of the function or wrapper that needs the env, for the error.
        env: The env, wrapped or not.

    Raises:
        InvalidArgumentError: The innermost env is not a `CodingRepairEnv`.
    """
    from coding_gym.envs.coding_repair import CodingRepairEnv  # slow to import

    core = getattr(env, "unwrapped", env)
    if not isinstance(core, CodingRepairEnv):
        raise InvalidArgumentError(
            f"{purpose} needs CodingRepair-v0, got {type(core).__name__}; for a vector env, use "
            "the methods of the vector env"
        )
    return core


def _has_state(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> bool:
    """Returns whether a wrapper has state; raises InvalidArgumentError for unknown wrappers."""
    cls = type(wrapper)
    if hasattr(cls, "snapshot_state"):
        return True
    is_known = cls.__module__.startswith("gymnasium.") and cls.__name__ in _STATELESS
    if not is_known and not cls.__module__.startswith("coding_gym.wrappers."):
        raise InvalidArgumentError(
            f"{cls.__name__} does not save its state in a snapshot; add a method snapshot_state "
            "(see docs/snapshots.md), or take a snapshot of the env inside the wrapper"
        )
    return False


def _read_file(path: Path) -> tuple[dict[str, Any], bytes]:
    """Returns the JSON document of a snapshot file, and the sandbox's changed files.

    Raises:
        InvalidArgumentError: The file is missing, damaged, or not a snapshot.
        OSError: The file cannot be read.
    """
    try:
        with ZipFile(path) as archive:
            document: dict[str, Any] = json.loads(archive.read(_STATE))
            if document["format"] != _FORMAT:
                raise ValueError(
                    f"its format must be {_FORMAT}, got {document['format']!r}; save a new "
                    "snapshot with this version of coding_gym"
                )
            for name, kind in _TYPES.items():
                if not isinstance(document[name], kind):
                    kind_name = getattr(kind, "__name__", kind)
                    raise ValueError(f"{name} must be {kind_name}, got {document[name]!r:.80}")
            if document["sampler"].keys() != {"name", "state"}:
                raise ValueError("sampler must have a name and a state")
            PCG64().state = document["np_random"]  # the generator of Gymnasium's envs
            return document, archive.read(_FILES)
    except FileNotFoundError:
        raise InvalidArgumentError(f"the snapshot {path} does not exist") from None
    except (BadZipFile, EOFError, RuntimeError, ValueError, LookupError, TypeError) as problem:
        raise InvalidArgumentError(
            f"{path} cannot be read as a snapshot of an env: {problem}"
        ) from problem
