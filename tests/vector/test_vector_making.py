"""The ways in: Gymnasium's make_vec, our helper, specs and their JSON."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from batches import SUBMIT, assert_same
from gymnasium.envs.registration import EnvSpec

from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.vector import CodingRepairVectorEnv, make_vec

Make = Callable[..., CodingRepairVectorEnv]
MODE = "vector_entry_point"
CLIP = {"name": "gymnasium.wrappers:ClipReward", "kwargs": {"min_reward": 0.25, "max_reward": 0.5}}


@pytest.mark.parametrize("mode", [MODE, None])
def test_gymnasium_makes_it(mode: str | None, rows: list[dict[str, Any]]) -> None:
    vec = gym.make_vec(
        "coding_gym:CodingRepair-v0",
        num_envs=2,
        vectorization_mode=mode,
        tasks=rows,
        env_wrappers=[CLIP],
        group_size=2,
    )
    assert isinstance(vec, CodingRepairVectorEnv)
    vec.reset(seed=0)
    assert vec.step([SUBMIT, SUBMIT])[1].tolist() == [0.25, 0.25]
    vec.close()


def test_its_spec_makes_it_again_from_json(make: Make) -> None:
    vec = make(3, wrappers=(CLIP,), group_size=3, prefetch=True, max_turns=7)
    assert vec.spec is not None
    spec = EnvSpec.from_json(vec.spec.to_json())
    assert spec == vec.spec
    again = gym.make_vec(spec)
    assert again.spec == vec.spec
    assert repr(again) == "CodingRepairVectorEnv(CodingRepair-v0, num_envs=3)"
    assert_same(vec.reset(seed=5), again.reset(seed=5))
    assert_same(vec.step([SUBMIT] * 3), again.step([SUBMIT] * 3))
    again.close()


def test_each_env_has_wrappers_and_a_spec_of_its_own(make: Make) -> None:
    vec = make(2, wrappers=[CLIP], max_turns=7)
    first, second = vec.envs
    assert first is not second
    assert first.spec == second.spec
    again = gym.make(EnvSpec.from_json(first.spec.to_json()))
    assert isinstance(again, gym.wrappers.ClipReward)
    assert again.unwrapped.limits.max_turns == 7


def test_wrappers_go_on_from_the_inside_out(make: Make) -> None:
    outer = {"name": "gymnasium.wrappers:RecordEpisodeStatistics"}
    env = make(1, wrappers=[CLIP, outer]).envs[0]
    assert isinstance(env, gym.wrappers.RecordEpisodeStatistics)
    assert isinstance(env.env, gym.wrappers.ClipReward)


@pytest.mark.parametrize(
    ("wrappers", "error", "said"),
    [
        ([{"name": "TokenBudge"}], UnknownNameError, "did you mean 'TokenBudget'?"),
        ([{"name": "none.such:Wrapper"}], InvalidArgumentError, "cannot be imported"),
        ([{"name": "gymnasium.wrappers:Nope"}], UnknownNameError, "no wrapper is called 'Nope'"),
        (["ClipReward"], InvalidArgumentError, "got 'ClipReward'"),
        ([{"kwargs": {}}], InvalidArgumentError, '{"name": ...'),
        ([CLIP | {"kwarg": 1}], InvalidArgumentError, "'kwarg': 1"),
        ([CLIP | {"kwargs": [1]}], InvalidArgumentError, "its kwargs a dict"),
        ([{"name": 7}], InvalidArgumentError, "a wrapper's name is a text"),
        ({"name": "ClipReward"}, InvalidArgumentError, "wrappers must be a list"),
        ([{"name": "gymnasium.wrappers:ClipReward", "kwargs": {"x": 1}}], TypeError, "'x'"),
    ],
)
def test_wrappers_that_cannot_be_are_refused(
    wrappers: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        CodingRepairVectorEnv(1, wrappers=wrappers)


def test_arguments_that_nobody_has_are_refused() -> None:
    with pytest.raises(TypeError, match="max_turn"):
        make_vec(1, max_turn=3)
    with pytest.raises(InvalidArgumentError, match="use max_turns"):
        make_vec(1, max_episode_steps=3)
