"""Snapshots of sandboxes, in memory."""

import json
import os
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path

from coding_gym.sandbox.layer_union import united
from coding_gym.sandbox.spec import SandboxSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All changes of a sandbox at one time; processes are not part of it.

    It is in memory and independent of its sandbox, which may be closed. It can be restored any
    number of times.

    Attributes:
        backend: Name of the backend that took it; only this backend can restore it.
        spec: The spec of the sandbox.
        data: The changed files, in a format of the backend.
    """

    backend: str
    spec: SandboxSpec
    data: bytes = field(repr=False)


def spec_digest(spec: SandboxSpec) -> str:
    """Returns a digest of the files and variables of a spec, independent of host paths.

    It covers the content of all files in the layers, but not limits and the kind of shell.
    """
    layers = [
        (path, entry.stat(follow_symlinks=False).st_mode, _content_id(entry))
        for path, entry in sorted(united(spec.layers).items())
    ]
    targets = [mount.target for mount in spec.mounts]
    python = spec.python and spec.python.version
    variables = sorted(spec.env.items())
    content = (layers, targets, python, spec.path, variables, spec.image, spec.workspace_alias)
    return sha256(json.dumps(content).encode()).hexdigest()


def _content_id(entry: os.DirEntry[str]) -> str:
    """Returns the digest of a file, the target of a symbolic link, or "" for other kinds."""
    if entry.is_symlink():
        return str(Path(entry.path).readlink())
    if not entry.is_file():
        return ""
    with Path(entry.path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
