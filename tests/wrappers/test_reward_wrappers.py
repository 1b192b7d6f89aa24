"""`PatchSimilarityReward` and `TestPassReward`: what they add, when, and what they refuse."""

import json
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from episodes import SUBMIT, Env, returning, shell

from coding_gym import Grade
from coding_gym.errors import InvalidArgumentError, InvalidTaskError, UnknownNameError
from coding_gym.rewards import fraction_passed, net_fraction_fixed, patch_similarity
from coding_gym.wrappers.composite_reward import PatchSimilarityReward, TestPassReward

pytestmark = pytest.mark.slow

REPAIR = returning("width * height")
HALF = returning("width * height if height else 9")
BLANK_LINE = shell("echo >> shapes.py")
CHEAT = shell(
    "printf 'import _pytest.python\\n_pytest.python.Function.runtest = lambda self: None\\n'"
    " >> shapes.py"
)


def play(env: Env, *actions: str) -> tuple[float, dict[str, float], dict[str, Any]]:
    """Reward, its parts and info of the last action, which must end the episode."""
    env.reset(seed=0)
    for action in actions:
        _, reward, terminated, truncated, info = env.step(action)
    assert terminated or truncated
    assert type(reward) is float
    assert {type(part) for part in info["reward_parts"].values()} == {float}
    assert reward == pytest.approx(sum(info["reward_parts"].values()))
    json.dumps(info, default=Grade.to_json)
    return reward, info["reward_parts"], info


@pytest.mark.parametrize(
    ("change", "by_progress", "by_fraction"),
    [(BLANK_LINE, 0.0, 0.0), (HALF, 0.5, 2 / 3), (returning("14"), 0.0, 1 / 3), (REPAIR, 1, 1)],
    ids=["blank line", "half", "one repaired, one broken", "repair"],
)
def test_tests_that_pass_are_worth_what_the_measure_says(
    make: Callable[..., Env], change: str, by_progress: float, by_fraction: float
) -> None:
    env = make(TestPassReward)
    _, parts, info = play(env, change, SUBMIT)
    assert env.unwrapped.episode.trajectory().settings["challenge"] == "passed"
    assert parts["test_pass"] == pytest.approx(0.2 * by_progress)
    assert parts["resolved"] == float(info["resolved"])
    grade = info["grade"]
    assert (net_fraction_fixed(grade), fraction_passed(grade)) == pytest.approx(
        (by_progress, by_fraction)
    )
    plain = make(lambda env: TestPassReward(env, weight=0.5, measure="fraction"))
    assert play(plain, change, SUBMIT)[1]["test_pass"] == pytest.approx(0.5 * by_fraction)


def test_likeness_to_the_gold_patch_is_worth_its_weight(make: Callable[..., Env]) -> None:
    env = make(lambda env: PatchSimilarityReward(env, weight=0.25))
    reward, parts, _ = play(env, REPAIR, SUBMIT)
    core: Any = env.unwrapped
    assert core.challenge == "resolved"  # no single test is read
    assert core.patch().text
    likeness = patch_similarity(core.task.gold_patch, core.patch().text)
    assert 0.7 < likeness <= 1  # git adds an index line to what the gold patch has
    assert parts == {"resolved": 1.0, "patch_similarity": 0.25 * likeness}
    assert reward == 1 + 0.25 * likeness
    close, _, _ = play(env, returning("width - height"), SUBMIT)
    assert 0.15 < close < 0.25


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (shell("true"), "empty_patch"),
        (shell("echo 'def test_more(): pass' >> test_shapes.py"), "empty_patch"),
        (CHEAT, "tampered"),
        (shell("head -c 17000000 /dev/urandom > large"), "patch_not_applied"),
    ],
    ids=["nothing", "tests only", "cheat", "too large"],
)
def test_bad_patches_add_nothing(make: Callable[..., Env], change: str, reason: str) -> None:
    fractions = lambda env: TestPassReward(env, measure="fraction")  # noqa: E731 - one more wrapper
    reward, parts, info = play(make(PatchSimilarityReward, fractions), change, SUBMIT)
    assert info["grade"].reason == reason
    assert reward == 0
    assert parts == {"resolved": 0.0, "patch_similarity": 0.0, "test_pass": 0.0}


def test_inner_wrappers_do_not_see_the_part(make: Callable[..., Env]) -> None:
    seen: list[dict[str, Any]] = []

    class Watch(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            result = super().step(action)
            seen.append(result[4])
            return result

    env = make(Watch, TestPassReward)
    play(env, HALF, SUBMIT)
    assert seen[-1]["reward_parts"] == {"resolved": 0.0}
    assert env.unwrapped.episode.trajectory().turns[-1].reward_parts == {"resolved": 0.0}


def test_a_task_without_a_gold_patch_is_refused_at_reset(make: Callable[..., Env]) -> None:
    env = make(PatchSimilarityReward, patch="")
    with pytest.raises(InvalidTaskError):
        env.reset()
    assert play(make(TestPassReward, patch=""), REPAIR, SUBMIT)[0] == 1.2


@pytest.mark.parametrize("wrapper", [PatchSimilarityReward, TestPassReward])
@pytest.mark.parametrize("weight", [0, 1, -0.1, float("nan"), True, "0.2", None])
def test_an_impossible_weight_is_refused(
    make: Callable[..., Env], wrapper: Callable[..., Env], weight: Any
) -> None:
    with pytest.raises(InvalidArgumentError, match="weight"):
        wrapper(make(), weight=weight)


def test_weights_of_a_chain_must_sum_to_less_than_one(make: Callable[..., Env]) -> None:
    inner = PatchSimilarityReward(make(), weight=0.4)
    assert TestPassReward(inner, weight=0.59).shaping_weight == 0.59
    with pytest.raises(InvalidArgumentError, match="PatchSimilarityReward"):
        TestPassReward(inner, weight=0.6)

    class Bonus(gym.Wrapper[Any, Any, Any, Any]):
        shaping_weight = 0.9

    with pytest.raises(InvalidArgumentError, match="Bonus"):
        TestPassReward(make(Bonus))
    with pytest.raises(UnknownNameError, match="progres"):
        TestPassReward(make(), measure="progres")
