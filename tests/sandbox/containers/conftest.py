"""A connection to a Docker daemon, and the backend that uses it."""

from collections.abc import Callable

import pytest
from docker_daemon import NAME

from coding_gym.sandbox.containers import DockerBackend
from coding_gym.sandbox.containers.engine import Engine


@pytest.fixture(scope="session")
def engine(daemons: Callable[[str], Engine]) -> Engine:
    return daemons("dockerd")


@pytest.fixture
def backend(engine: Engine) -> DockerBackend:
    return DockerBackend(NAME, host=engine.url)
