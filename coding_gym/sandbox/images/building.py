"""Folders of untrusted content: a sandbox makes them, and can write to nothing else."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from coding_gym.sandbox.protocol import Sandbox, SandboxBackend
from coding_gym.sandbox.spec import Mount, SandboxSpec

BUILT = "/opt/built"


@contextmanager
def build_sandbox(backend: SandboxBackend, folder: Path, spec: SandboxSpec) -> Iterator[Sandbox]:
    """Yields a sandbox whose commands write to an empty host folder, at `BUILT`.

    The folder's content is untrusted: after the sandbox is closed, nothing changes it any more, but
    links in it may lead anywhere.

    Raises:
        SandboxError: As `SandboxBackend.open`.
    """
    os.chown(folder, *backend.owner())
    mounts = (*spec.mounts, Mount(source=folder, target=BUILT, writable=True))
    with backend.open(replace(spec, mounts=mounts)) as sandbox:
        yield sandbox
