"""Adapters and commands whose package is missing name the extra that installs it."""

import sys
from importlib import import_module

import pytest

from coding_gym.adapters import rllib
from coding_gym.errors import MissingDependencyError


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("nemo_gym", "nemo_gym.base_resources_server", "nemo-gym"),
        ("openenv", "openenv.core.env_server", "openenv"),
        ("sb3", "stable_baselines3.common.env_util", "sb3"),
        ("verifiers", "verifiers.v1", "verifiers"),
        ("verl", "verl.experimental.agent_loop.agent_loop", "verl"),
    ],
)
def test_an_adapter_names_its_missing_extra(
    module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"coding_gym.adapters.{module}", raising=False)
    with pytest.raises(MissingDependencyError, match=rf"pip install .*\[{extra}\]"):
        import_module(f"coding_gym.adapters.{module}")


def test_rllib_names_its_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.tune.registry", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .*\[rllib\]"):
        rllib.register()
