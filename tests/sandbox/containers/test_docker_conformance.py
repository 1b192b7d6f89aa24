import contextlib
import json
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest
from checks import SandboxCheck, hold, sandbox_checks
from checks.debug import disconnect
from host_image import NAME

from coding_gym.sandbox.containers import DockerBackend
from coding_gym.sandbox.containers.docker_backend import DEFAULT_IMAGE
from coding_gym.sandbox.containers.docker_engine import Engine
from coding_gym.sandbox.protocol import Probe

pytestmark = pytest.mark.slow


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


@pytest.fixture
def default_engine(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the test's daemon the one that is meant where none is named."""
    engine.api.tag(NAME, *DEFAULT_IMAGE.split(":"))
    monkeypatch.setenv("DOCKER_HOST", engine.url)
    disconnect("")
    yield
    disconnect("")


@pytest.mark.usefixtures("default_engine")
def test_a_task_is_repaired_and_graded(tiny_row: dict[str, Any]) -> None:
    name = "coding_gym:CodingRepair-v0"
    with contextlib.closing(gym.make(name, tasks=[tiny_row], sandbox="docker")) as env:
        env.reset()
        tests = {"name": "shell", "arguments": {"cmd": "python -m pytest -q 2>&1 | tail -1"}}
        _, _, _, _, info = env.step(json.dumps(tests))
        assert "1 failed, 1 passed" in info["text"]
        mend = {"name": "shell", "arguments": {"cmd": "sed -i 's/width + /width * /' shapes.py"}}
        env.step(json.dumps(mend))
        _, reward, terminated, _, info = env.step("done")
        assert (reward, terminated, info["resolved"], info["error"]) == (1.0, True, True, "")
