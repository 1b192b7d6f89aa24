"""Files of snapshots: one tar with the sandbox's files and a JSON document, without pickle.

Its members are ``env.json``, ``data`` (the changed files in a format of the backend), and
``sha256``, the digest of these two members.
"""

import io
import json
import tarfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.envs.snapshot import EnvSnapshot, check_equal, settings_of
from coding_gym.episode import EpisodeSnapshot
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import Snapshot
from coding_gym.sandbox.spec import spec_digest
from coding_gym.tasks import find_task
from coding_gym.trajectory import whole_file

_FORMAT = 4
_STATE, _FILES, _DIGEST = "env.json", "data", "sha256"
_WRITTEN = ("settings", "tasks", "sampler", "seed", "np_random", "wrappers")
"""Fields of a snapshot that are JSON values."""


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
    episode = snapshot.episode
    document = {
        "format": _FORMAT,
        "task_id": episode.task.task_id,
        "backend": episode.files.backend,
        "spec": spec_digest(episode.files.spec),
        "episode": episode.to_json(),
        **{name: getattr(snapshot, name) for name in _WRITTEN},
    }
    state, data = json.dumps(document).encode(), episode.files.data
    _write(path, {_STATE: state, _FILES: data, _DIGEST: _digest(state, data)})


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
    return EnvSnapshot(episode=episode, **{name: document[name] for name in _WRITTEN})


def _write(path: Path, members: Mapping[str, bytes]) -> None:
    """Writes a tar file with these members by name.

    Raises:
        OSError: The file cannot be written.
    """
    with whole_file(path) as partial, tarfile.open(partial, "w") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Returns the JSON document of a snapshot file, and the sandbox's changed files.

    Raises:
        InvalidArgumentError: The file is missing, damaged, or not a snapshot.
        OSError: The file cannot be read.
    """
    try:
        with tarfile.open(path, "r:") as tar:  # compressed data could exceed memory
            state = _content(tar, _STATE)
            document: dict[str, Any] = json.loads(state)
            if document["format"] != _FORMAT:
                raise ValueError(
                    f"its format must be {_FORMAT}, got {document['format']!r}; save a new "
                    "snapshot with this version"
                )
            files = _content(tar, _FILES)
            if _content(tar, _DIGEST) != _digest(state, files):
                raise ValueError("it is damaged; copy it again")
        return document, files
    except FileNotFoundError:
        raise InvalidArgumentError(f"the snapshot {path} does not exist") from None
    except (
        tarfile.TarError,
        ValueError,
        LookupError,
        TypeError,
        OverflowError,
        RecursionError,
    ) as problem:
        raise InvalidArgumentError(f"{path} is not a snapshot of an env: {problem}") from problem


def _content(tar: tarfile.TarFile, name: str) -> bytes:
    entry = tar.getmember(name)
    file = tar.extractfile(entry)
    if file is None or entry.issparse():  # sparse data can exceed memory
        raise ValueError(f"{name} must be a plain member of the tar, without holes")
    return file.read()


def _digest(*members: bytes) -> bytes:
    digest = sha256()
    for member in members:
        digest.update(member)
    return digest.hexdigest().encode()
