"""Folders of untrusted content: a sandbox makes them, and can write to nothing else."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from coding_gym.sandbox.protocol import Sandbox, SandboxBackend
from coding_gym.sandbox.spec import Mount, SandboxSpec

BUILT = "/opt/built"


@contextmanager
def build_sandbox(
    backend: SandboxBackend, spec: SandboxSpec, folders: Mapping[str, Path]
) -> Iterator[Sandbox]:
    """Yields a sandbox whose commands write to host folders.

    Their content is untrusted: after the sandbox is closed, nothing changes it any more, but links
    in it may lead anywhere.

    Args:
        backend: Opens the sandbox.
        spec: What else the sandbox has.
        folders: By path inside, such as `BUILT`; made where they are missing.

    Raises:
        SandboxError: As `SandboxBackend.open`.
    """
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, *backend.owner())
    mounts = (Mount(source=folder, target=t, writable=True) for t, folder in folders.items())
    with backend.open(replace(spec, mounts=(*spec.mounts, *mounts))) as sandbox:
        yield sandbox
