"""What holds for every wrapper of the package, and for every pair of them."""

import inspect
import itertools
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit

import coding_gym.wrappers
from coding_gym.errors import InvalidArgumentError

# Arguments other than the defaults, by wrapper; `path` stands for a file of the test's own.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "MenuActions": {"num_candidates": 5},
    "PatchSimilarityReward": {"weight": 0.125},
    "RecordTrajectory": {"path": "path"},
    "TestPassReward": {"weight": 0.25, "measure": "fraction"},
    "TokenActions": {"max_new_tokens": 7},
    "TokenBudget": {"max_tokens": 4000, "reserve_tokens": 100, "warnings": False},
    "ToolCallBudget": {"max_tool_calls": 9, "warnings": False},
    "TranscriptObservation": {"max_tokens": 64},
}
NAMES = sorted(ARGUMENTS)

# (outer, inner) pairs that make no sense, besides every wrapper around itself.
REFUSED = {
    ("MenuActions", "TokenActions"),
    ("TokenActions", "MenuActions"),
    ("PatchSimilarityReward", "RecordTrajectory"),
    ("TestPassReward", "RecordTrajectory"),
}


def wrap(env: gym.Env[Any, Any], name: str, tmp_path: Path) -> gym.Env[Any, Any]:
    arguments = {
        key: str(tmp_path / "episodes.jsonl") if value == "path" else value
        for key, value in ARGUMENTS[name].items()
    }
    wrapper: gym.Env[Any, Any] = getattr(coding_gym.wrappers, name)(env, **arguments)
    return wrapper


@pytest.fixture
def env(tiny_row: dict[str, Any]) -> gym.Env[Any, Any]:
    return gym.make("CodingRepair-v0", tasks=[tiny_row], max_obs_tokens=128)


def test_every_wrapper_is_listed_here() -> None:
    assert sorted(coding_gym.wrappers.__all__) == coding_gym.wrappers.__all__ == NAMES


def test_every_file_of_the_room_holds_one_wrapper_that_is_exported() -> None:
    folder = Path(str(coding_gym.wrappers.__file__)).parent
    files = {path.stem for path in folder.glob("*.py")}
    classes = [getattr(coding_gym.wrappers, name) for name in NAMES]
    assert {c.__module__.rpartition(".")[2] for c in classes} <= files
    assert len({c.__module__ for c in classes}) == len(classes)


@pytest.mark.parametrize("name", NAMES)
def test_constructor_arguments_are_recorded(
    name: str, env: gym.Env[Any, Any], tmp_path: Path
) -> None:
    wrapped: Any = wrap(env, name, tmp_path)
    parameters = list(inspect.signature(type(wrapped).__init__).parameters)[2:]
    assert sorted(wrapped._saved_kwargs) == sorted(parameters)
    wrapped.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_spec_makes_an_equal_env_through_json(
    name: str, env: gym.Env[Any, Any], tmp_path: Path
) -> None:
    wrapped = wrap(env, name, tmp_path)
    assert wrapped.spec is not None
    again = gym.make(EnvSpec.from_json(wrapped.spec.to_json()))
    assert again.spec == wrapped.spec
    assert type(again) is type(wrapped)
    assert again.observation_space == wrapped.observation_space
    assert again.action_space == wrapped.action_space
    wrapped.close()
    again.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_arguments_are_named_and_json_native(name: str) -> None:
    signature = inspect.signature(getattr(coding_gym.wrappers, name).__init__)
    defaults = [p.default for p in signature.parameters.values() if p.default is not p.empty]
    assert json.loads(json.dumps(defaults)) == defaults


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(NAMES, NAMES)))
def test_a_pair_composes_or_is_refused_by_name(
    outer: str, inner: str, env: gym.Env[Any, Any], tmp_path: Path
) -> None:
    inside = wrap(env, inner, tmp_path)
    if outer != inner and (outer, inner) not in REFUSED:
        both = wrap(inside, outer, tmp_path)
        observation, _ = both.reset(seed=0)
        assert observation in both.observation_space
        both.close()
        return
    with pytest.raises(InvalidArgumentError, match=f"{outer} cannot be put around {inner}: "):
        wrap(inside, outer, tmp_path)
    env.close()


@pytest.mark.parametrize("name", NAMES)
def test_other_environments_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} wraps CodingRepair-v0, got CartPole"):
        wrap(gym.make("CartPole-v1").unwrapped, name, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_stock_time_limit_inside_is_refused(
    name: str, env: gym.Env[Any, Any], tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgumentError, match="max_turns"):
        wrap(TimeLimit(env, 10), name, tmp_path)
