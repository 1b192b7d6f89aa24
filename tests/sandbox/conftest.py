"""Layers that sandboxes may own, sandboxes of the namespace backend, container daemons."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from docker_daemon import NAME, running
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
def daemons() -> Iterator[Callable[[str], Engine]]:
    """Starts ``dockerd`` or ``podman`` once; skips if it cannot be started."""
    engines: dict[str, Engine] = {}
    skipped: dict[str, str] = {}
    with ExitStack() as stack:

        def start(name: str) -> Engine:
            if name in skipped:
                pytest.skip(skipped[name])
            if name not in engines:
                try:
                    engines[name] = stack.enter_context(running(name))
                except pytest.skip.Exception as reason:
                    skipped[name] = str(reason)
                    raise
            return engines[name]

        yield start


@pytest.fixture(scope="session")
def engine(daemons: Callable[[str], Engine]) -> Engine:
    return daemons("dockerd")


@pytest.fixture
def backend(engine: Engine) -> DockerBackend:
    return DockerBackend(NAME, host=engine.url)
