"""`MenuActions`: actions, observations, limits, and candidates shared by threads."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np
import pytest
from episodes import SHELF, Closing, Env, in_another_process, play, raising
from shelf_menu import RUN_TESTS, SUBMIT, TRY, make, menu_feature, play_seeded

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.repair import program
from coding_gym.repair.localisation import localise
from coding_gym.repair.search import try_candidate
from coding_gym.synthesis.suite import Suite
from coding_gym.wrappers import MenuActions
from coding_gym.wrappers.menu_actions import CANDIDATE_FEATURES


@pytest.fixture
def env(closing: Closing) -> MenuActions:
    """An env with a menu of eight candidates."""
    return closing(make())


def patch(env: Env) -> str:
    text: str = env.unwrapped.episode.patch().text  # type: ignore[attr-defined]
    return text


RIGHT = (
    "--- a/shelf.py\n+++ b/shelf.py\n@@ -7 +7 @@\n"
    "-        if len(self.things) > self.size:\n+        if len(self.things) >= self.size:\n"
)


@pytest.mark.parametrize("gold", [RIGHT, RIGHT.replace(">= self", "== self")])
def test_the_menu_does_not_depend_on_the_gold_patch(closing: Closing, gold: str) -> None:
    files = SHELF["files"] | {"NOTES": gold}  # so that no cached candidates are used
    with_gold = closing(make(tasks=[SHELF | {"files": files, "patch": gold}]))
    without_gold = closing(make())
    for env in (without_gold, with_gold):
        env.reset(seed=0)
    for action in (TRY, RUN_TESTS, TRY + 1, RUN_TESTS):
        expected, observation = without_gold.step(action)[0], with_gold.step(action)[0]
        for name, values in expected.items():
            np.testing.assert_array_equal(observation[name], values, name)


def test_candidates_are_observed_at_reset_and_each_action_is_a_turn(env: MenuActions) -> None:
    observation, _ = env.reset()
    assert observation["candidates"][0, CANDIDATE_FEATURES.index("template_compare")] == 1.0
    for number, action in enumerate((RUN_TESTS, TRY, np.int64(TRY), np.array(TRY)), 1):
        observation, *_, info = env.step(action)
        assert info["turn"] == number
        assert menu_feature(observation, "turns_left") == pytest.approx(1 - number / 50)


def test_only_the_chosen_candidate_is_applied(env: MenuActions) -> None:
    env.reset()
    patches = []
    env.step(RUN_TESTS)
    assert patch(env) == ""  # a run of the tests changes nothing in the tree
    for number in (0, 3, 1, 0):
        env.step(TRY + number)
        patches.append(patch(env))
    assert patches[0] == patches[3]
    assert len(set(patches)) == 3


@pytest.mark.parametrize("action", [-1, 10, 1 << 70, True, "submit", np.array([1, 2])])
def test_actions_outside_the_menu_are_refused(env: MenuActions, action: Any) -> None:
    env.reset()
    with pytest.raises(InvalidArgumentError):
        env.step(action)


@pytest.mark.parametrize("tool_format", ["auto", "bash_block", "hermes"])
def test_trying_all_candidates_repairs_in_every_format(closing: Closing, tool_format: str) -> None:
    env = closing(make(tool_format=tool_format))
    env.reset(seed=0)
    env.step(TRY)
    assert menu_feature(env.step(RUN_TESTS)[0], "passed_all") == 1.0
    assert env.step(SUBMIT)[1] == 1.0


def test_invalid_menus_are_refused(env: MenuActions) -> None:
    inner = env.env
    numbers: list[Any] = [0, -1, 1.5, True]
    for number in numbers:
        with pytest.raises(InvalidArgumentError, match="num_candidates"):
            MenuActions(inner, number)
    with pytest.raises(InvalidArgumentError, match="toolset"):
        make(toolset="bash")
    with pytest.raises(InvalidArgumentError, match="'rust'"):
        env.reset(options={"task": SHELF | {"language": "rust"}})


def uncached_task(name: str) -> dict[str, Any]:
    """Returns a task whose candidates no other test has cached."""
    return SHELF | {"files": SHELF["files"] | {"NOTES": name}}


@pytest.mark.slow
def test_another_process_observes_the_same(closing: Closing) -> None:
    env = closing(make())
    expected = play_seeded(env)
    assert play_seeded(env) == expected
    assert in_another_process(play_seeded) == expected


@pytest.mark.slow
def test_threads_share_candidates_and_their_trials(
    closing: Closing, monkeypatch: pytest.MonkeyPatch
) -> None:
    localisation, trial = mock.Mock(wraps=localise), mock.Mock(wraps=try_candidate)
    monkeypatch.setattr(program, "localise", localisation)
    monkeypatch.setattr(program, "try_candidate", trial)
    tasks = [uncached_task("threads")]

    def run(_: int) -> list[str]:
        env = closing(make(tasks=tasks))
        env.reset(seed=0)
        return play(env, [TRY, RUN_TESTS])

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(run, range(4))
    assert (localisation.call_count, trial.call_count) == (1, 1)
    assert others == [first] * 3


@pytest.mark.slow
def test_an_infrastructure_failure_masks_the_episode(
    closing: Closing, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = closing(make(tasks=[uncached_task("failure")]))
    with monkeypatch.context() as patch:
        patch.setattr(Suite, "open", raising(SandboxError("out of memory")))
        env.reset()
        _, reward, terminated, truncated, info = env.step(RUN_TESTS)
    assert (reward, terminated, truncated, info["mask_sample"]) == (0.0, False, True, True)
    assert (info["stop_reason"], info["error"]) == ("sandbox_error", "out of memory")
    env.reset()
    assert env.action_masks()[TRY]
