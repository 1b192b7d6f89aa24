"""Makes folders of untrusted content in a sandbox that can write to these folders only."""

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

    The content is untrusted: it is final once the sandbox is closed, but symbolic links in it may
    point outside.

    Args:
        backend: Opens the sandbox.
        spec: The rest of the sandbox.
        folders: By path inside, such as `BUILT`; missing ones are made.

    Raises:
        SandboxError: As `SandboxBackend.open`.
    """
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, *backend.owner())
    mounts = (Mount(source=folder, target=t, writable=True) for t, folder in folders.items())
    with backend.open(replace(spec, mounts=(*spec.mounts, *mounts))) as sandbox:
        yield sandbox
