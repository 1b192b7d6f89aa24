"""The contract of `coding_gym.sandbox.protocol`, as tests that run on every backend.

`BACKENDS` says which backends run which tests. A test names the `Promise` that it belongs to by the
marker ``promise``. It must fail on a backend whose probe declares that promise missing, unless the
marker has ``strict=False``: then the machine itself may keep the promise.
"""

from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import NamedTuple

import pytest
from docker_daemon import NAME
from sandbox_fixtures import opened

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import Probe, Sandbox, SandboxBackend, get_backend
from coding_gym.sandbox.docker_backend import DockerBackend
from coding_gym.sandbox.namespace import NamespaceBackend

_WITHOUT_SNAPSHOTS = ("commands", "ends", "files", "isolation", "layers", "limits", "siblings")


class Case(NamedTuple):
    """A backend, and the tests that it runs; only "auto" runs outside the slow suite.

    Attributes:
        make: Returns the backend; None for the daemon of a fixture.
        tests: Names of modules without ``test_conformance_``; empty for all.
    """

    make: Callable[[], SandboxBackend] | None
    tests: Collection[str] = ()


# The automatic choice, one backend of each other kind, and subsets where a variant differs.
BACKENDS = {
    "auto": Case(lambda: get_backend("auto")),
    "landlock": Case(lambda: get_backend("landlock")),
    "dockerd": Case(None, _WITHOUT_SNAPSHOTS),
    "podman": Case(None, _WITHOUT_SNAPSHOTS),
    # The variant on kernels before 6.6.
    "namespace-on-disk": Case(
        lambda: NamespaceBackend(changes="disk"), ("layers", "snapshots", "limits", "siblings")
    ),
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "promise(promise, strict=True): the isolation that a test belongs to"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" not in metafunc.fixturenames:
        return
    module = metafunc.module.__name__.removeprefix("test_conformance_")
    params = [
        pytest.param(name, marks=[pytest.mark.slow] * (name != "auto"))
        for name, case in BACKENDS.items()
        if not case.tests or module in case.tests
    ]
    metafunc.parametrize("backend", params, indirect=True, scope="session")


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> SandboxBackend:
    """Each of `BACKENDS`; skips unavailable ones, except the automatic one."""
    make = BACKENDS[request.param].make
    if make is None:
        return DockerBackend(NAME, host=request.getfixturevalue(request.param).url)
    made = make()
    probe = _probe(made)
    if not probe.available and request.param != "auto":
        pytest.skip(f"{request.param}: {probe.detail}; {probe.remedy}")
    assert probe.available, probe
    return made


@pytest.fixture
def sandbox(backend: SandboxBackend) -> Iterator[Sandbox]:
    """A sandbox with an empty workspace."""
    with opened(backend) as made:
        yield made


@cache
def _probe(backend: SandboxBackend) -> Probe:
    return backend.probe()


@pytest.fixture(autouse=True)
def declared(request: pytest.FixtureRequest) -> None:
    """Expects a test to fail if the backend declares its promise missing."""
    marker = request.node.get_closest_marker("promise")
    if marker is None or "backend" not in request.fixturenames:
        return
    if marker.args[0] in _probe(request.getfixturevalue("backend")).missing:
        request.node.add_marker(
            pytest.mark.xfail(
                reason=f"declared missing: {marker.args[0].value}",
                strict=marker.kwargs.get("strict", True),
                raises=(AssertionError, pytest.fail.Exception, InvalidArgumentError),
            )
        )
