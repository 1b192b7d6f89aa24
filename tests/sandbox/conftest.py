"""Fixtures: layers, sandboxes of the namespace backend, container daemons."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from docker_daemon import NAME, running_daemon
from sandbox_fixtures import BACKEND, AlivePipe, MakeLayer, change_owner, make_sandbox, write_files
from sandbox_fixtures import alive_pipe as open_alive_pipe

from coding_gym.sandbox import Sandbox, default_interpreter
from coding_gym.sandbox.docker_backend import DockerBackend
from coding_gym.sandbox.docker_engine import Engine


@pytest.fixture
def make_layer(tmp_path: Path) -> MakeLayer:
    """Makes folders with files, owned as layers must be."""
    count = iter(range(1000))

    def make(files: Mapping[str, str]) -> Path:
        folder = tmp_path / f"layer{next(count)}"
        folder.mkdir()
        change_owner(BACKEND, write_files(folder, files))
        return folder

    return make


@pytest.fixture
def alive_pipe() -> Iterator[AlivePipe]:
    with open_alive_pipe(BACKEND) as alive:
        yield alive


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with make_sandbox(python=default_interpreter()) as opened:
        yield opened


@pytest.fixture(scope="session")
def dockerd() -> Iterator[Engine]:
    with running_daemon("dockerd") as engine:
        yield engine


@pytest.fixture(scope="session")
def podman() -> Iterator[Engine]:
    with running_daemon("podman") as engine:
        yield engine


@pytest.fixture(scope="session")
def engine(dockerd: Engine) -> Engine:
    return dockerd


@pytest.fixture
def backend(engine: Engine) -> DockerBackend:
    return DockerBackend(NAME, host=engine.url)
