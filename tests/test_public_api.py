import importlib
import sys

import gymnasium as gym
import pytest

import coding_gym


def test_the_public_names_are_sorted_and_exist() -> None:
    for name in ["coding_gym", "coding_gym.rewards", "coding_gym.vector", "coding_gym.wrappers"]:
        module = importlib.import_module(name)
        assert module.__all__ == sorted(module.__all__), name
        assert all(hasattr(module, public) for public in module.__all__), name


def test_the_env_is_registered_without_a_time_limit() -> None:
    importlib.import_module("coding_gym")
    spec = gym.spec("CodingRepair-v0")
    assert spec.max_episode_steps is None


def test_an_older_python_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    with pytest.raises(ImportError, match=r"^coding_gym needs Python 3\.11 or newer, got .*$"):
        importlib.reload(coding_gym)
