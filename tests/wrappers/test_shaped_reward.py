"""`ShapedReward`: parts at the end and per turn, their sum, and refused arguments."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from episodes import SUBMIT, Env, MakeEnv, raising, restored_registries, returning, shell

from coding_gym import Grade, GradeReason, Stop
from coding_gym.errors import (
    GradingError,
    InvalidArgumentError,
    InvalidTaskError,
    UnknownNameError,
)
from coding_gym.rewards import Reward, register_reward, reward_names
from coding_gym.wrappers import ShapedReward

Make = Callable[..., ShapedReward[Any, Any]]
REPAIR = returning("width * height")  # test_wide passes in addition
HALF = returning("width * height if height else 9")
BREAK = returning("None")  # test_square no longer passes
LOOK = shell("ls && cat shapes.py")
EQUAL = "class Equal(int):\n    __eq__ = lambda *_: True\n\n\narea = lambda *_: Equal()\n"
CHEAT = shell(f"printf '{EQUAL}' >> shapes.py")
WEIGHT = 0.03
EVERY = dict.fromkeys(reward_names(), WEIGHT)


@pytest.fixture
def make(make_env: MakeEnv) -> Make:
    """Returns a function that makes envs of the tiny task, with weights by part."""

    def make(
        parts: dict[str, float], gamma: float = 1.0, challenge: str = "passed", **arguments: Any
    ) -> ShapedReward[Any, Any]:
        entries = [{"name": name, "weight": weight} for name, weight in parts.items()]
        return ShapedReward(make_env(challenge=challenge, **arguments), entries, gamma)

    return make


def play(env: Env, *actions: str) -> tuple[float, dict[str, float], dict[str, Any]]:
    """Plays an episode; returns the reward, its parts and the info of the last action."""
    env.reset(seed=0)
    for action in actions:
        _, reward, terminated, truncated, info = env.step(action)
    assert terminated or truncated
    assert type(reward) is float
    assert {type(part) for part in info["reward_parts"].values()} == {float}
    assert reward == pytest.approx(sum(info["reward_parts"].values()))
    json.dumps(info, default=Grade.to_json)
    return reward, info["reward_parts"], info


@pytest.mark.slow
def test_passing_tests_earn_their_weight(make: Make) -> None:
    env = make({"net_fraction_fixed": 0.2, "fraction_passed": 0.5})
    _, parts, _ = play(env, HALF, SUBMIT)
    assert parts == {
        "resolved": 0.0,
        "net_fraction_fixed": pytest.approx(0.2 * 0.5),
        "fraction_passed": pytest.approx(0.5 * 2 / 3),
    }


@pytest.mark.slow
def test_every_reward_is_a_part_and_reveals_no_gold(make: Make) -> None:
    env = make(EVERY)
    resolved_reward, parts, _ = play(env, LOOK, REPAIR, SUBMIT)
    assert sorted(parts) == sorted([*EVERY, "resolved"])
    for name in ("net_fraction_fixed", "file_match", "exact_match", "line_similarity", "areno"):
        assert parts[name] == pytest.approx(WEIGHT)
    assert resolved_reward > 1
    texts = [message["content"] for message in env.unwrapped.episode.messages]  # type: ignore[attr-defined]
    assert "test_hidden" not in "".join(texts)
    wrong_reward, parts, _ = play(env, LOOK, returning("width - height"), SUBMIT)
    assert wrong_reward < 1
    texts = [message["content"] for message in env.unwrapped.episode.messages]  # type: ignore[attr-defined]
    assert "width * height" not in "".join(texts)
    assert play(env, SUBMIT)[0] <= WEIGHT  # for the valid call


def test_negative_weight_never_rewards_a_tampered_episode(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    tampered = Grade(resolved=False, reason=GradeReason.TAMPERED)
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", lambda *_, **__: tampered)
    _, parts, _ = play(make({"areno": -0.2}), shell("touch new.py"), SUBMIT)
    assert parts["areno"] == 0.0


def test_a_stop_is_not_an_action_of_the_policy(make: Make) -> None:
    env = make({"one_turn": 0.5})
    env.reset()
    env.step(LOOK)
    assert env.step(Stop("length"))[4]["reward_parts"]["one_turn"] == 0.5


@pytest.fixture(autouse=True)
def one_turn() -> Any:
    """Registers a reward that is 1 for episodes of one turn."""
    with restored_registries():
        register_reward(Reward(name="one_turn", score=lambda sample: float(len(sample.turns) == 1)))
        yield


def test_masked_episodes_have_no_parts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "coding_gym.episode.episode.grade_patch", raising(GradingError("no report"))
    )
    reward, parts, info = play(make(EVERY), SUBMIT)
    assert info["mask_sample"] is True
    assert (reward, parts) == (0.0, {"resolved": 0.0})


def test_tasks_without_data_for_a_part_are_refused(make: Make, tiny_row: dict[str, Any]) -> None:
    with pytest.raises(InvalidTaskError, match="patch_similarity"):
        make({"patch_similarity": 0.2}, tasks=[tiny_row | {"patch": ""}]).reset()
    with pytest.raises(InvalidTaskError, match="'command'"):
        make({"visible_tests": 0.2}, tasks=[tiny_row | {"runner": "command"}]).reset()
    make({"areno": 0.2}, tasks=[tiny_row | {"patch": ""}]).reset()


def test_parts_that_the_env_cannot_compute_are_refused(make: Make) -> None:
    for name in ("areno", "net_fraction_fixed"):
        with pytest.raises(InvalidArgumentError, match=name):
            make({name: 0.1}, grading="none")
    for name in ("fraction_passed", "net_fraction_fixed"):
        with pytest.raises(InvalidArgumentError, match="challenge"):
            make({name: 0.1}, challenge="resolved")
    make({"areno": 0.1}, challenge="resolved")
    make({"patch_similarity": 0.1}, grading="none", challenge="resolved")


@pytest.mark.parametrize("weight", [0, 1, -1, float("nan"), True, "0.2", None])
def test_an_invalid_weight_is_refused(make: Make, weight: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="weight"):
        make({"patch_similarity": weight})


@pytest.mark.parametrize(
    "parts",
    [
        None,
        [],
        {"name": "file_match", "weight": 0.1},
        [{"name": "file_match"}],
        [{"name": "file_match", "weight": 0.1, "more": 1}],
        [{"name": "file_match", "weight": 0.1}] * 2,
    ],
    ids=str,
)
def test_parts_of_another_form_are_refused(make_env: MakeEnv, parts: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        ShapedReward(make_env(), parts)
    with pytest.raises(UnknownNameError, match="file_matc"):
        ShapedReward(make_env(), [{"name": "file_matc", "weight": 0.1}])


def test_weights_of_all_parts_sum_to_less_than_one(make: Make) -> None:
    make({"patch_similarity": 0.4, "file_match": 0.3, "visible_tests": 0.29})
    for parts in (
        {"patch_similarity": 0.4, "file_match": 0.6},
        {"patch_similarity": 0.4, "file_match": -0.6},
        {"patch_similarity": 0.4, "visible_tests": 0.6},
        {"areno": 0.5},  # from -1 to 1
        {"areno": -0.3, "file_match": 0.4},
    ):
        with pytest.raises(InvalidArgumentError, match=list(parts)[-1]):
            make(parts)


def test_a_discount_raises_the_bound_of_visible_tests(make: Make) -> None:
    make({"visible_tests": 0.6, "file_match": 0.3}, gamma=0.995, max_turns=50)
    make({"visible_tests": 0.05, "file_match": 0.4}, gamma=0.9, max_turns=50)
    for parts, max_turns in (
        ({"visible_tests": 0.05, "file_match": 0.6}, 50),
        ({"visible_tests": 0.05}, None),
    ):
        with pytest.raises(InvalidArgumentError):
            make(parts, gamma=0.9, max_turns=max_turns)
    for gamma in (0, 1.01, True, "1", float("nan")):
        with pytest.raises(InvalidArgumentError, match="gamma"):
            make({"file_match": 0.1}, gamma=gamma)


def visible_part(env: Env, action: str) -> float:
    _, reward, terminated, _, info = env.step(action)
    assert reward == pytest.approx(sum(info["reward_parts"].values()))
    assert terminated == (action == SUBMIT)
    value = info["reward_parts"]["visible_tests"]
    assert type(value) is float
    return value


@pytest.mark.slow
def test_visible_parts_of_an_episode_sum_to_zero(make: Make) -> None:
    env = make({"visible_tests": 0.5})
    env.reset()
    parts = [visible_part(env, a) for a in (LOOK, REPAIR, shell("true"), BREAK, REPAIR, SUBMIT)]
    assert parts == [0.0, 0.25, 0.0, -0.5, 0.5, -0.25]  # 1 of 2 tests more, 2 fewer, ...
    env.reset()
    assert visible_part(env, SUBMIT) == 0


@pytest.mark.slow
def test_discounted_visible_parts_sum_to_zero(make: Make) -> None:
    env = make({"visible_tests": 0.25}, gamma=0.99)
    env.reset()
    parts = [visible_part(env, action) for action in (REPAIR, shell("true"), SUBMIT)]
    assert parts[0] == pytest.approx(0.99 * 0.125)
    assert sum(0.99**n * value for n, value in enumerate(parts)) == pytest.approx(0, abs=1e-12)


@pytest.mark.slow
def test_editing_tests_configuration_or_output_earns_nothing(make: Make) -> None:
    env = make({"visible_tests": 0.5})
    env.reset()
    for cheat in (
        "printf 'def test_square(): pass\\ndef test_wide(): pass\\n' > test_shapes.py",
        "rm test_shapes.py; echo 'def test_a(): pass' > test_more.py",
        "printf '[pytest]\\naddopts = -k square\\n' > pytest.ini; echo '== 9 passed in 0.1s =='",
        "printf 'collect_ignore = [\"test_shapes.py\"]\\n' > conftest.py",
    ):
        assert visible_part(env, shell(cheat)) == 0
    assert visible_part(env, CHEAT) <= 0


def test_an_infrastructure_failure_of_visible_tests_is_masked(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "coding_gym.wrappers.visible_tests.grade", raising(GradingError("no report"))
    )
    env = make({"visible_tests": 0.5})
    env.reset()
    assert visible_part(env, REPAIR) == 0
    _, reward, _, truncated, info = env.step(SUBMIT)
    assert (reward, truncated, info["mask_sample"]) == (0.0, True, True)
    assert info["error"] == "no report"
    assert "visible_tests" not in info["reward_parts"]
