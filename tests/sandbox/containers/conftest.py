"""A connection to each of the daemons, and the backend that uses it."""

from collections.abc import Callable

import pytest
from docker_daemon import NAME, READY

from coding_gym.sandbox.containers import DockerBackend
from coding_gym.sandbox.containers.engine import Engine


@pytest.fixture(scope="session", params=READY)
def engine(request: pytest.FixtureRequest, daemons: Callable[[str], Engine]) -> Engine:
    return daemons(request.param)


@pytest.fixture
def backend(engine: Engine) -> DockerBackend:
    return DockerBackend(NAME, host=engine.url)
