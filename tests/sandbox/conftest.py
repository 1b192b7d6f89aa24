"""Layers that sandboxes may own, and sandboxes of the namespace backend."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from checks.beacon import Beacon
from checks.beacon import beacon as sign_of_life
from sandbox_scene import BACKEND, MakeLayer, make_sandbox
from snapshot_scenes import BACKENDS

from coding_gym.sandbox import Sandbox, SandboxBackend, default_interpreter


@pytest.fixture
def make_layer(tmp_path: Path) -> MakeLayer:
    """Makes folders with the given files, owned as layers must be."""
    count = iter(range(1000))

    def make(files: Mapping[str, str]) -> Path:
        folder = tmp_path / f"layer{next(count)}"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, *BACKEND.owner(), follow_symlinks=False)
        return folder

    return make


@pytest.fixture
def beacon() -> Iterator[Beacon]:
    with sign_of_life(BACKEND) as lit:
        yield lit


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with make_sandbox(python=default_interpreter()) as opened:
        yield opened


@pytest.fixture(params=BACKENDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def any_backend(kind: str) -> SandboxBackend:
    """Each of the backends whose snapshots are tested."""
    return BACKENDS[kind]
