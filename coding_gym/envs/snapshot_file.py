"""Files of snapshots: one tar with the sandbox's files and a JSON document, without pickle.

The tar is that of `coding_gym.sandbox.Snapshot`, with one more member, ``env.json``.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.envs.snapshot import EnvSnapshot, check_equal, settings_of
from coding_gym.episode import EpisodeSnapshot, Usage
from coding_gym.episode.config import EpisodeConfig, task_digest
from coding_gym.errors import InvalidArgumentError
from coding_gym.json_record import JsonRecord, read_record
from coding_gym.sandbox import Snapshot
from coding_gym.sandbox.snapshot import read_members, write_members
from coding_gym.tasks import find_task
from coding_gym.trajectory import Message, Turn

if TYPE_CHECKING:
    from coding_gym.tasks import Sampler

_FORMAT = 2
_STATE = "env.json"


def save_snapshot(snapshot: EnvSnapshot, path: Path) -> None:
    """Writes a snapshot; see `EnvSnapshot.save`."""
    for name, wrapper_state in snapshot.wrappers.items():
        try:
            json.dumps(wrapper_state)
        except (TypeError, ValueError) as problem:
            raise InvalidArgumentError(
                f"the state of {name} cannot be written to a file: {problem}; save a snapshot of "
                "the env inside it"
            ) from None
    state = json.dumps(_to_json(snapshot)).encode()
    write_members(path, {**snapshot.episode.files.members(), _STATE: state})


def load_snapshot(path: Path, core: CodingRepairEnv) -> EnvSnapshot:
    """Reads a snapshot; see `EnvSnapshot.load`."""
    document = _read(path)
    task = find_task(core.config.tasks, document.task_id)
    check_equal(settings_of(core.config, task), document.settings)
    episode = EpisodeSnapshot(
        task=task,
        files=Snapshot.load(path, core.config.template(task).spec),
        opening=document.opening,
        turns=document.turns,
        usage=document.usage,
    )
    sampler: Sampler | None = None  # `restore` refuses a snapshot without one; `reset` accepts it
    recorded, kind = document.sampler, type(core.sampler).__name__
    if document.tasks == _tasks_digest(core.config) and recorded["name"] == kind:
        sampler = core.sampler.copy()
        sampler.set_state(recorded["state"])
    np_random = np.random.Generator(np.random.PCG64(0))  # as Gymnasium's
    np_random.bit_generator.state = document.np_random
    return EnvSnapshot(
        episode=episode,
        config=core.config,
        sampler=sampler,
        seed=document.seed,
        np_random=np_random,
        wrappers=document.wrappers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document(JsonRecord):
    """The JSON document of `_to_json`, without its format."""

    task_id: str
    settings: Mapping[str, Any]
    opening: tuple[Message, ...]
    turns: tuple[Turn, ...]
    usage: Usage
    tasks: str
    sampler: Mapping[str, Any]  # name of the class, and state
    seed: int | None
    np_random: Mapping[str, Any]
    wrappers: Mapping[str, Any]


def _read(path: Path) -> _Document:
    """Returns the document of a file."""
    (state,) = read_members(path, {_STATE: None})
    try:
        data = json.loads(state)
        if data["format"] != _FORMAT:
            raise ValueError(
                f"its format must be {_FORMAT}, got {data['format']!r}; save a new one with "
                "this version"
            )
        return read_record(_Document, data)
    except (ValueError, LookupError, TypeError) as problem:
        raise InvalidArgumentError(f"{path} is not a snapshot of an env: {problem}") from problem


def _to_json(snapshot: EnvSnapshot) -> dict[str, Any]:
    episode, sampler = snapshot.episode, snapshot.sampler
    return {
        "format": _FORMAT,
        "task_id": episode.task.task_id,
        "settings": settings_of(snapshot.config, episode.task),
        "opening": episode.opening,
        "turns": [turn.to_json() for turn in episode.turns],
        "usage": asdict(episode.usage),
        "tasks": _tasks_digest(snapshot.config),
        "sampler": {"name": type(sampler).__name__, "state": sampler and sampler.state()},
        "seed": None if snapshot.seed is None else int(snapshot.seed),
        "np_random": dict(snapshot.np_random.bit_generator.state),
        "wrappers": dict(snapshot.wrappers),
    }


def _tasks_digest(config: EpisodeConfig) -> str:
    """Returns a digest of all tasks of the sampler, in their order."""
    tasks = [(task.task_id, task_digest(task)) for task in config.tasks]
    return sha256(json.dumps(tasks).encode()).hexdigest()
