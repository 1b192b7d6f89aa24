"""`CompositeReward`: named parts at the end of an episode, and what a chain may not hold."""

from collections.abc import Callable

import pytest
from episodes import SUBMIT, Env, MakeEnv, raising, returning

from coding_gym import Stop
from coding_gym.errors import GradingError, InvalidArgumentError
from coding_gym.rewards import reward_names
from coding_gym.wrappers import CompositeReward, PatchSimilarityReward, TestPassReward

LOOK = '{"name": "shell", "arguments": {"cmd": "ls && cat shapes.py"}}'
WEIGHT = 0.03
EVERY = [{"name": name, "weight": WEIGHT} for name in reward_names()]


@pytest.fixture
def make(make: Callable[..., Env]) -> Callable[..., Env]:
    return lambda parts, **fields: CompositeReward(make(**fields), parts=parts)


def play(env: Env, *actions: str) -> tuple[float, dict[str, float], str]:
    """Reward and parts at the end, and all that the policy was shown."""
    _, info = env.reset(seed=0)
    shown = info["text"]
    for action in actions:
        _, reward, terminated, _, info = env.step(action)
        shown += info["text"]
    assert terminated
    assert reward == pytest.approx(sum(info["reward_parts"].values()))
    return float(reward), info["reward_parts"], shown


def test_every_reward_is_a_part_and_leaks_no_gold(make: Callable[..., Env]) -> None:
    env = make(EVERY)
    good, parts, shown = play(env, LOOK, returning("width * height"), SUBMIT)
    assert sorted(parts) == sorted([*reward_names(), "resolved"])
    assert {type(part) for part in parts.values()} == {float}
    for name in (
        "net_fraction_fixed",
        "file_match",
        "function_match",
        "exact_match",
        "line_similarity",
        "areno",
    ):
        assert parts[name] == pytest.approx(WEIGHT)
    assert parts["tool_call_validity"] == pytest.approx(WEIGHT)
    assert parts["exploration_efficiency"] == pytest.approx(WEIGHT / 2)  # two calls, one file
    assert good > 1
    wrong, parts, more = play(env, LOOK, returning("width - height"), SUBMIT)
    assert wrong < 1
    assert parts["calibrated_similarity"] == pytest.approx(WEIGHT / 2)
    assert parts["areno"] == pytest.approx(-WEIGHT / 2)
    nothing, parts, rest = play(env, SUBMIT)
    assert nothing <= WEIGHT  # of the one valid call
    assert "width * height" not in more + rest
    assert "test_hidden" not in shown + more + rest


def test_a_stop_is_not_the_policys_reply(make: Callable[..., Env]) -> None:
    env = make([{"name": "reasoning_format", "weight": 0.1}])
    env.reset(seed=0)
    env.step("<think>\nIt adds.\n</think>\n<answer>\nshapes.py\n</answer>\n")
    *_, info = env.step(Stop("length"))
    assert info["reward_parts"]["reasoning_format"] == pytest.approx(0.1)


def test_masked_ends_lack_parts(make: Callable[..., Env], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "coding_gym.episode.episode.grade_patch", raising(GradingError("no report"))
    )
    env = make(EVERY)
    env.reset()
    _, reward, _, truncated, info = env.step(SUBMIT)
    assert truncated
    assert info["mask_sample"] is True
    assert (reward, info["reward_parts"]) == (0.0, {"resolved": 0.0})


def test_a_chain_has_bounded_weights_and_unique_parts(make: Callable[..., Env]) -> None:
    inner = make([{"name": "areno", "weight": 0.4}])  # from -1 to 1
    with pytest.raises(InvalidArgumentError):
        TestPassReward(inner, weight=0.2)
    with pytest.raises(InvalidArgumentError):
        make([{"name": "swe_rl_similarity", "weight": -0.6}])
    inner = make([{"name": "patch_similarity", "weight": 0.1}])
    with pytest.raises(InvalidArgumentError, match="patch_similarity"):
        PatchSimilarityReward(inner)


def test_rewards_of_the_grade_are_refused_where_there_is_none(make_env: MakeEnv) -> None:
    env = make_env(grading="none")
    for wrap in (TestPassReward, lambda e: CompositeReward(e, [{"name": "areno", "weight": 0.1}])):
        with pytest.raises(InvalidArgumentError):
            wrap(env)
    assert PatchSimilarityReward(env).part_names == ("patch_similarity",)


def test_only_rewards_of_single_tests_have_each_of_them_challenged(make_env: MakeEnv) -> None:
    for name, challenge in (("areno", "resolved"), ("net_fraction_fixed", "passed")):
        env = CompositeReward(make_env(), [{"name": name, "weight": 0.1}])
        assert env.unwrapped.challenge == challenge  # type: ignore[attr-defined]
