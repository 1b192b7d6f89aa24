import pytest
from host_image import NAME

from coding_gym.sandbox.containers import DockerBackend
from coding_gym.sandbox.protocol import Probe
from coding_gym.testing import SandboxCheck, hold, sandbox_checks


@pytest.fixture(scope="module")
def probe(engine: object, docker_host: str) -> Probe:
    assert engine is not None
    return DockerBackend(NAME, host=docker_host).probe()


@pytest.mark.parametrize("check", sandbox_checks(), ids=lambda check: check.name)
def test_docker_keeps_the_contract(
    backend: DockerBackend, probe: Probe, check: SandboxCheck
) -> None:
    hold(check, backend, missing=probe.missing)


def test_the_probe_names_what_it_tried(probe: Probe) -> None:
    assert probe.available
    assert NAME in probe.detail
    assert probe.remedy == ""
