"""Creation of vector envs: arguments, wrappers, ``gym.make_vec``, and specs as JSON."""

from typing import Any

import gymnasium as gym
import pytest
from episodes import SUBMIT, Closing, MakeVec, assert_same
from gymnasium.envs.registration import EnvSpec

from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.vector import CodingRepairVectorEnv
from coding_gym.wrappers import TokenBudget

ID = "coding_gym:CodingRepair-v0"
CLIP = {"name": "gymnasium.wrappers:ClipReward", "kwargs": {"min_reward": 0.25, "max_reward": 0.5}}


def test_gym_make_vec_creates_this_vector_env(rows: list[dict[str, Any]], closing: Closing) -> None:
    vec = closing(gym.make_vec(ID, num_envs=2, tasks=rows, env_wrappers=[CLIP]))
    assert isinstance(vec, CodingRepairVectorEnv)
    vec.reset(seed=0)
    assert vec.step([SUBMIT, SUBMIT])[1].tolist() == [0.25, 0.25]


def test_the_json_of_its_spec_creates_an_equal_env(
    rows: list[dict[str, Any]], closing: Closing
) -> None:
    vec = closing(gym.make_vec(ID, num_envs=3, env_wrappers=[CLIP], tasks=rows, max_turns=7))
    assert vec.spec is not None
    spec = EnvSpec.from_json(vec.spec.to_json())
    assert spec == vec.spec
    copy = closing(gym.make_vec(spec))
    assert copy.spec == vec.spec
    assert repr(copy) == "CodingRepairVectorEnv(CodingRepair-v0, num_envs=3)"
    assert_same(vec.reset(seed=5), copy.reset(seed=5))
    assert_same(vec.step([SUBMIT] * 3), copy.step([SUBMIT] * 3))


def test_wrappers_can_be_callables(make: MakeVec) -> None:
    env = make(1, env_wrappers=[TokenBudget, CLIP]).envs[0]
    assert isinstance(env, gym.wrappers.ClipReward)
    assert isinstance(env.env, TokenBudget)
    vec = make(2, env_wrappers=[CLIP, lambda inner: TokenBudget(inner, max_tokens=3000)])
    assert {config.limits.max_tokens for config in vec.get_attr("config")} == {3000}


@pytest.mark.parametrize(
    ("wrappers", "named"),
    [
        ([{"name": "TokenBudge"}], "'TokenBudge'"),
        (["TokenBudget"], "'TokenBudget'"),
        ([{"name": "TokenBudget", "max_tokens": 3000}], "'max_tokens'"),
        ([{"kwargs": {}}], "name"),
        ([{"name": 7}], "name"),
    ],
)
def test_an_invalid_wrapper_is_named(wrappers: Any, named: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=named):
        CodingRepairVectorEnv(1, env_wrappers=wrappers)


@pytest.mark.parametrize("argument", ["max_turn", "max_episode_steps", "num_threads"])
def test_an_unknown_argument_is_named(argument: str) -> None:
    with pytest.raises(InvalidArgumentError, match=argument):
        CodingRepairVectorEnv(1, **{argument: 3})
