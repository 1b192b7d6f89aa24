"""Files of snapshots: a zip archive with the sandbox's files and a JSON document, without pickle.

Its members are ``env.json``, and ``data``: the changed files, in a format of the backend. The
archive contains their checksums.
"""

import json
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.envs.snapshot import EnvSnapshot, check_equal, settings_of
from coding_gym.episode import EpisodeSnapshot
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import Snapshot
from coding_gym.sandbox.spec import spec_digest
from coding_gym.tasks import find_task
from coding_gym.whole_file import whole_file

_FORMAT = 5
_STATE, _FILES = "env.json", "data"
_JSON_FIELDS = ("settings", "tasks", "sampler", "seed", "np_random", "wrappers")
"""Fields of an `EnvSnapshot` that are JSON values."""


def save_snapshot(snapshot: EnvSnapshot, path: Path) -> None:
    """Writes a snapshot; see `EnvSnapshot.save`."""
    for name, wrapper_state in snapshot.wrappers.items():
        try:
            json.dumps(wrapper_state)
        except (TypeError, ValueError) as problem:
            raise InvalidArgumentError(
                f"the state of {name} cannot be written to a file: {problem}; save a snapshot of "
                f"the env inside {name}"
            ) from None
    episode = snapshot.episode
    document = {
        "format": _FORMAT,
        "task_id": episode.task.task_id,
        "backend": episode.files.backend,
        "spec": spec_digest(episode.files.spec),
        "episode": episode.to_json(),
        **{name: getattr(snapshot, name) for name in _JSON_FIELDS},
    }
    with whole_file(path) as partial_path, ZipFile(partial_path, "w") as archive:
        archive.writestr(_STATE, json.dumps(document))
        archive.writestr(_FILES, episode.files.data)


def load_snapshot(path: Path, core: CodingRepairEnv) -> EnvSnapshot:
    """Reads a snapshot; see `EnvSnapshot.load`."""
    document, data = _read(path)
    task = find_task(core.config.tasks, document["task_id"])
    check_equal(settings_of(core.config, task), document["settings"])
    spec = core.config.template(task).spec
    if document["spec"] != spec_digest(spec):
        raise InvalidArgumentError(
            f"the snapshot {path} needs a sandbox with the same spec and layers; use an env with "
            "the settings and the task of the snapshot"
        )
    files = Snapshot(backend=document["backend"], spec=spec, data=data)
    episode = EpisodeSnapshot.from_json(document["episode"] | {"task": task, "files": files})
    return EnvSnapshot(episode=episode, **{name: document[name] for name in _JSON_FIELDS})


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
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
                    "snapshot with this version"
                )
            absent = {"task_id", "backend", "spec", "episode", *_JSON_FIELDS} - document.keys()
            if absent:
                raise ValueError(f"it has no {', '.join(sorted(absent))}")
            return document, archive.read(_FILES)
    except FileNotFoundError:
        raise InvalidArgumentError(f"the snapshot {path} does not exist") from None
    except (BadZipFile, EOFError, RuntimeError, ValueError, LookupError, TypeError) as problem:
        raise InvalidArgumentError(f"{path} is not a snapshot of an env: {problem}") from problem
