"""The ways in: Gymnasium's make_vec, our helper, specs and their JSON."""

from typing import Any

import gymnasium as gym
import pytest
from episodes import SUBMIT, Closing, MakeVec, assert_same
from gymnasium.envs.registration import EnvSpec

from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.vector import CodingRepairVectorEnv, make_vec
from coding_gym.vector.sub_envs import make_envs
from coding_gym.wrappers import TokenBudget

MODE = "vector_entry_point"
CLIP = {"name": "gymnasium.wrappers:ClipReward", "kwargs": {"min_reward": 0.25, "max_reward": 0.5}}


@pytest.mark.parametrize("mode", [MODE, None])
def test_gymnasium_makes_it(mode: str | None, rows: list[dict[str, Any]], closing: Closing) -> None:
    arguments = {"tasks": rows, "env_wrappers": [CLIP], "group_size": 2}
    name = "coding_gym:CodingRepair-v0"
    vec = closing(gym.make_vec(name, num_envs=2, vectorization_mode=mode, **arguments))
    assert isinstance(vec, CodingRepairVectorEnv)
    vec.reset(seed=0)
    assert vec.step([SUBMIT, SUBMIT])[1].tolist() == [0.25, 0.25]


def test_its_spec_makes_it_again_from_json(make: MakeVec, closing: Closing) -> None:
    vec = make(3, wrappers=(CLIP,), group_size=3, prefetch=True, max_turns=7)
    assert vec.spec is not None
    spec = EnvSpec.from_json(vec.spec.to_json())
    assert spec == vec.spec
    again = closing(gym.make_vec(spec))
    assert again.spec == vec.spec
    assert repr(again) == "CodingRepairVectorEnv(CodingRepair-v0, num_envs=3)"
    assert_same(vec.reset(seed=5), again.reset(seed=5))
    assert_same(vec.step([SUBMIT] * 3), again.step([SUBMIT] * 3))


def test_each_env_has_wrappers_and_a_spec_of_its_own(make: MakeVec) -> None:
    vec = make(2, wrappers=[CLIP], max_turns=7)
    first, second = vec.envs
    assert first is not second
    assert first.spec == second.spec
    again = gym.make(EnvSpec.from_json(first.spec.to_json()))
    assert isinstance(again, gym.wrappers.ClipReward)
    assert again.unwrapped.limits.max_turns == 7


def test_wrappers_may_be_callables_and_have_either_name(make: MakeVec) -> None:
    env = make(1, env_wrappers=[TokenBudget, CLIP]).envs[0]
    assert isinstance(env, gym.wrappers.ClipReward)
    assert isinstance(env.env, TokenBudget)
    by_hand = make(2, wrappers=[CLIP, lambda inner: TokenBudget(inner, max_tokens=3000)])
    assert {each.max_tokens for each in by_hand.get_attr("limits")} == {3000}


@pytest.mark.parametrize(
    ("wrappers", "said"),
    [
        ([{"name": "TokenBudge"}], "did you mean 'TokenBudget'?"),
        ([{"name": "none.such:Wrapper"}], "cannot be imported"),
        ([{"name": "menu_actions"}], "did you mean 'MenuActions'?"),
        ([{"name": "chain"}], "no wrapper is called 'chain'"),
        ([{"name": "gymnasium.wrappers:Nope"}], "^gymnasium.wrappers has no class 'Nope'$"),
        (
            [{"name": "gymnasium.wrappers:clip_reward"}],
            "no class 'clip_reward'; did you mean 'ClipReward'?",
        ),
        ([{"name": "gymnasium:Env"}], "not a class of gymnasium.Wrapper"),
        (["TokenBudget"], 'write {"name": "TokenBudget"}'),
        ([lambda _: None], "a wrapper must return an env"),
        ("TokenBudget", "wrappers must be a list of"),
        ([{"name": "TokenBudget", "max_tokens": 3000}], "put max_tokens under 'kwargs'"),
        (
            [{"name": "TokenBudget", "kwargs": {"max_token": 3000}}],
            "no argument 'max_token'; did you",
        ),
        ([{"name": "TokenBudget", "kwargs": {"env": 1}}], "no argument 'env'"),
        (
            [{"name": "RecordTrajectory"}],
            'needs path; write {"name": "RecordTrajectory", "kwargs": {"path": ...}}',
        ),
        ([{"kwargs": {}}], '{"name": ...'),
        ([CLIP | {"kwarg": 1}], "'kwarg': 1"),
        ([CLIP | {"kwargs": [1]}], "its kwargs a dict"),
        ([{"name": 7}], "a wrapper's name is a text"),
        ([CLIP | {"kwargs": {"x": 1}}], "it has min_reward, max_reward"),
    ],
)
def test_wrappers_that_cannot_be_are_refused(wrappers: Any, said: str) -> None:
    for make in (CodingRepairVectorEnv, make_vec):
        with pytest.raises(
            (InvalidArgumentError, UnknownNameError), match=said.replace("?", r"\?")
        ):
            make(1, wrappers=wrappers)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_turn": 3}, "CodingRepair-v0 has no argument 'max_turn'; did you mean 'max_turns'?"),
        ({"n_envs": 3}, "did you mean 'num_envs'?"),
        ({"prefetc": True}, "did you mean 'prefetch'?"),
        ({"env_wrappers": [CLIP], "wrappers": [CLIP]}, "are the same; give one of the two"),
        ({"vectorization_mode": "sync"}, "no argument 'vectorization_mode'; it has num_envs, wrap"),
        ({"max_episode_steps": 3}, "use max_turns"),
        ({"prefetch": "yes"}, "prefetch must be true or false, got 'yes'"),
    ],
)
def test_arguments_that_nobody_has_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said.replace("?", r"\?")):
        make_vec(**given)


def test_arguments_of_a_single_env_are_not_looked_for_among_those_of_many() -> None:
    with pytest.raises(InvalidArgumentError, match="n_envs"):
        make_envs(1, [], {"n_envs": 2})


@pytest.mark.parametrize(
    ("name", "kwargs", "said"),
    [
        ("TimeLimit", {"max_episode_steps": 1}, "a second time; use max_turns"),
        ("Autoreset", {}, "use a vector env"),
    ],
)
def test_wrappers_that_spoil_an_episodes_end_are_refused_anywhere(
    name: str, kwargs: dict[str, Any], said: str, rows: list[dict[str, Any]]
) -> None:
    entry = {"name": f"gymnasium.wrappers:{name}", "kwargs": kwargs}
    for wrappers in ([entry], [CLIP, entry], [entry, CLIP]):
        with pytest.raises(InvalidArgumentError, match=f"{name} cannot wrap .* {said}"):
            make_vec(2, wrappers=wrappers, tasks=rows)
