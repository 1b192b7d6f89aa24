"""Snapshots of sandboxes, in memory and as files that other processes and hosts can load."""

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.layer_union import united
from coding_gym.sandbox.spec import SandboxSpec

if TYPE_CHECKING:
    import os

_FORMAT = 2
_HEADER, _DATA = "snapshot.json", "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All changes of a sandbox at one time; processes are not part of it.

    It is in memory and independent of its sandbox, which may be closed. It can be restored any
    number of times.

    Attributes:
        backend: Name of the backend that made it; only this one can restore it.
        spec: The spec that the sandbox was opened with.
        data: The changed files, in a format of the backend.
    """

    backend: str
    spec: SandboxSpec
    data: bytes = field(repr=False)

    def save(self, path: Path) -> None:
        """Writes a tar with a header; a file at the path is replaced atomically.

        Reads all files of the layers, whose digest is part of the header.

        Raises:
            OSError: It cannot be written.
        """
        write_members(path, self.members())

    def members(self) -> dict[str, bytes]:
        """Returns the members of the tar that `save` writes, by name."""
        header = {"format": _FORMAT, "backend": self.backend, "spec": _digest(self.spec)}
        return {_HEADER: json.dumps(header).encode(), _DATA: self.data}

    @classmethod
    def load(cls, path: Path, spec: SandboxSpec) -> Self:
        """Returns the snapshot of a file.

        Load only files that you trust: a forged snapshot can replace any file of the sandbox.

        Args:
            path: A file that `save` wrote, in any process on any host.
            spec: The spec of the sandbox to restore; its layers must have the same content.

        Raises:
            InvalidArgumentError: The file is missing, damaged, of another format, or of a sandbox
                with another spec.
            OSError: It cannot be read.
        """
        header, data = read_members(path, _HEADER, _DATA)
        try:
            fields = json.loads(header)
            version, backend, digest = (fields[name] for name in ("format", "backend", "spec"))
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise InvalidArgumentError(f"{path} is not a snapshot, or damaged: {error}") from error
        if version != _FORMAT:
            raise InvalidArgumentError(
                f"a snapshot's format must be {_FORMAT}, got {version!r} in {path}; save a new one"
            )
        if digest != _digest(spec):
            raise InvalidArgumentError(
                f"{path} is of a sandbox with another spec, or whose layers differ; open one with "
                "the settings and the task of the snapshot"
            )
        return cls(backend=backend, spec=spec, data=data)


def write_members(path: Path, members: Mapping[str, bytes]) -> None:
    """Writes a tar of members by name; a file at the path is replaced atomically.

    Raises:
        OSError: It cannot be written.
    """
    partial = path.with_name(f"{path.name}.{uuid4().hex[:8]}.partial")
    try:
        with tarfile.open(partial, "w") as tar:
            for name, data in members.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_members(path: Path, *names: str) -> list[bytes]:
    """Returns the content of members of a tar, which must be uncompressed.

    Raises:
        InvalidArgumentError: There is no such tar, or a member is missing or damaged.
        OSError: It cannot be read.
    """
    try:
        with tarfile.open(path, "r:") as tar:  # compressed data can be larger than memory
            return [_content(tar, name) for name in names]
    except FileNotFoundError:
        raise InvalidArgumentError(f"there is no snapshot {path}") from None
    except (tarfile.TarError, ValueError, LookupError, OverflowError) as error:
        raise InvalidArgumentError(f"{path} is not a snapshot, or is damaged: {error}") from error


def _content(tar: tarfile.TarFile, name: str) -> bytes:
    entry = tar.getmember(name)
    file = tar.extractfile(entry)
    if file is None or entry.issparse():  # holes can be larger than memory
        raise ValueError(f"{name} is not a file without holes")
    return file.read()


def _digest(spec: SandboxSpec) -> str:
    """Returns a digest of a spec as commands see it, independent of paths of the host."""
    layers = [
        (path, entry.stat(follow_symlinks=False).st_mode, _content_id(entry))
        for path, entry in sorted(united(spec.layers).items())
    ]
    settings = {
        "layers": layers,
        "mounts": [(mount.target, mount.writable) for mount in spec.mounts],
        "sockets": sorted(spec.sockets),
        "forwards": sorted(spec.forwards),
        "python": spec.python and spec.python.version,
        "path": spec.path,
        "env": dict(spec.env),
        "limits": asdict(spec.limits),
        "network": spec.network,
        "image": spec.image,
        "workspace_alias": spec.workspace_alias,
        "shell": spec.shell,
        "preload": spec.preload,
    }
    return sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _content_id(entry: "os.DirEntry[str]") -> str:
    """Returns the digest of a file, the target of a link, "" for anything else."""
    if entry.is_symlink():
        return str(Path(entry.path).readlink())
    if not entry.is_file():
        return ""
    with Path(entry.path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
