from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from episodes import SHELF, Closing, Env
from gymnasium.wrappers import FlattenObservation, TransformObservation
from shelf_menu import RUN_TESTS, TRY, make, menu, solve

from coding_gym.errors import InvalidArgumentError
from coding_gym.wrappers import MenuActions, ToolCallBudget
from coding_gym.wrappers.menu_actions import CANDIDATE_FEATURES


@pytest.fixture
def env(closing: Closing) -> MenuActions:
    """A menu of eight candidates on one small task."""
    return closing(make())


def patch(env: Env) -> str:
    text: str = env.unwrapped.patch().text  # type: ignore[attr-defined]
    return text


def test_the_plain_strategy_repairs_and_is_rewarded(env: MenuActions) -> None:
    outcomes = solve(env, seed=0)
    observation, reward, terminated, truncated, info = outcomes[-1]
    assert (reward, terminated, truncated, info["resolved"]) == (1.0, True, False, True)
    changed = [
        line
        for line in patch(env).splitlines()
        if line[0] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert changed == [
        "-        if len(self.things) > self.size:",
        "+        if len(self.things) >= self.size:",
    ]
    assert env.observation_space.contains(observation)


RIGHT = (
    "--- a/shelf.py\n+++ b/shelf.py\n@@ -7 +7 @@\n"
    "-        if len(self.things) > self.size:\n+        if len(self.things) >= self.size:\n"
)


@pytest.mark.parametrize("gold", [RIGHT, RIGHT.replace(">= self", "== self")])
def test_the_menu_does_not_depend_on_the_gold_patch(closing: Closing, gold: str) -> None:
    files = SHELF["files"] | {"NOTES": gold}  # what is found for one is not kept for the other
    guided = closing(make(tasks=[SHELF | {"files": files, "patch": gold}]))
    without = closing(make())
    for env in (without, guided):
        env.reset(seed=0)
    for action in (TRY, RUN_TESTS, TRY + 1, RUN_TESTS):
        observation, other = without.step(action)[0], guided.step(action)[0]
        for name, values in observation.items():
            np.testing.assert_array_equal(values, other[name], name)


@pytest.mark.slow
def test_a_bundled_task_is_resolved_by_the_plain_strategy(closing: Closing) -> None:
    env = make(tasks="bundled", task_ids=["cronwise-working-days"], num_candidates=48)
    outcomes = solve(closing(env))
    assert outcomes[-1][1] == 1.0
    assert len(outcomes) <= 20


def test_candidates_are_known_from_the_start(env: MenuActions) -> None:
    observation, _ = env.reset()
    assert observation["candidates"][0, CANDIDATE_FEATURES.index("template_compare")] == 1.0
    observation = env.step(RUN_TESTS)[0]
    assert menu(observation, "turns_left") == pytest.approx(49 / 50)


def test_a_task_without_a_failing_test_warns_once(
    closing: Closing, caplog: pytest.LogCaptureFixture
) -> None:
    files = SHELF["files"] | {"tests/test_shelf.py": "def test_nothing():\n    pass\n"}
    env = closing(make(tasks=[SHELF | {"files": files}]))
    for _ in range(2):
        env.reset()
    assert len(caplog.messages) == 1


def test_only_the_chosen_candidate_is_in_place(env: MenuActions) -> None:
    env.reset()
    patches = []
    env.step(RUN_TESTS)
    assert patch(env) == ""  # a run of the tests changes nothing in the tree
    for number in (0, 3, 1, 0):
        env.step(TRY + number)
        patches.append(patch(env))
    assert patches[0] == patches[3]
    assert len(set(patches)) == 3


def test_each_action_is_one_turn(env: MenuActions) -> None:
    env.reset()
    for number, action in enumerate((TRY, RUN_TESTS, RUN_TESTS, np.int64(TRY), np.array(TRY)), 1):
        info = env.step(action)[4]
        assert info["turn"] == number
    assert env.action_space == gym.spaces.Discrete(len(env.action_meanings()))


@pytest.mark.parametrize("action", [-1, 10, 1 << 70, True, "submit", np.array([1, 2])])
def test_actions_outside_the_menu_are_refused(env: MenuActions, action: Any) -> None:
    env.reset()
    with pytest.raises(InvalidArgumentError):
        env.step(action)


def test_limits_hold_within_an_action(env: MenuActions) -> None:
    env = MenuActions(ToolCallBudget(env.env, max_tool_calls=2), 8)
    env.reset()
    env.step(TRY)
    observation, _, _, truncated, info = env.step(TRY + 1)
    assert (truncated, info["stop_reason"]) == (True, "max_tool_calls")
    assert env.observation_space.contains(observation)


def test_other_keys_of_the_observation_stay(env: MenuActions) -> None:
    inner: Any = env.env
    space = gym.spaces.Dict({**inner.observation_space.spaces, "more": gym.spaces.Discrete(2)})
    more = MenuActions(TransformObservation(inner, lambda o: {**o, "more": 1}, space), 3)
    observation, _ = more.reset()
    assert observation["more"] == 1
    assert set(observation) == {
        *inner.observation_space.spaces,
        "more",
        "action_mask",
        "candidates",
        "menu",
    }
    assert more.observation_space.contains(observation)
    assert observation["action_mask"].tolist() == more.action_masks().tolist()


def test_a_menu_without_its_needs_is_refused(env: MenuActions) -> None:
    inner = env.env
    numbers: list[Any] = [0, -1, 1.5, True]
    for number in numbers:
        with pytest.raises(InvalidArgumentError, match="num_candidates"):
            MenuActions(inner, number)
    with pytest.raises(InvalidArgumentError, match="tool_format"):
        MenuActions(gym.make("CodingRepair-v0", tasks=[SHELF], tool_format="bash_block"))
    with pytest.raises(InvalidArgumentError, match="FlattenObservation"):
        MenuActions(FlattenObservation(inner))
    with pytest.raises(InvalidArgumentError, match="'rust'"):
        env.reset(options={"task": SHELF | {"language": "rust"}})
