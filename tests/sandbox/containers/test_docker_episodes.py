"""An episode in containers, from the first command to the grade."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest
from host_image import NAME
from sandbox_fixtures import disconnect_docker

from coding_gym.sandbox.containers.docker_backend import DEFAULT_IMAGE
from coding_gym.sandbox.containers.docker_engine import Engine

pytestmark = pytest.mark.slow


@pytest.fixture
def default_engine(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the test's daemon the one that is used where none is named."""
    engine.api.tag(NAME, *DEFAULT_IMAGE.split(":"))
    monkeypatch.setenv("DOCKER_HOST", engine.url)
    disconnect_docker("")
    yield
    disconnect_docker("")


@pytest.mark.usefixtures("default_engine")
def test_a_task_is_repaired_and_graded(tiny_row: dict[str, Any]) -> None:
    name = "coding_gym:CodingRepair-v0"
    with contextlib.closing(gym.make(name, tasks=[tiny_row], sandbox="docker")) as env:
        env.reset()
        tests = {"name": "shell", "arguments": {"cmd": "python -m pytest -q 2>&1 | tail -1"}}
        _, _, _, _, info = env.step(json.dumps(tests))
        assert "1 failed, 1 passed" in info["text"]
        fix = {"name": "shell", "arguments": {"cmd": "sed -i 's/width + /width * /' shapes.py"}}
        env.step(json.dumps(fix))
        _, reward, terminated, _, info = env.step("done")
        assert (reward, terminated, info["resolved"], info["error"]) == (1.0, True, True, "")
