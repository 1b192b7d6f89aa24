"""Adapters and commands whose package is missing name the extra that installs it."""

import sys
from importlib import import_module

import pytest
from episodes import run_command

from coding_gym.adapters import rllib
from coding_gym.errors import MissingDependencyError


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("nemo_gym", "nemo_gym.base_resources_server", "nemo-gym"),
        ("openenv", "openenv.core.env_server", "openenv"),
        ("sb3", "stable_baselines3.common.env_util", "sb3"),
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


def test_serve_names_its_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openenv.core.env_server", None)
    monkeypatch.delitem(sys.modules, "coding_gym.adapters.openenv", raising=False)
    text = run_command("serve", code=2)
    assert "pip install" in text
    assert "[openenv]" in text
