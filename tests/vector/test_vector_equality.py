"""The vector env returns the same values as Gymnasium's `SyncVectorEnv`."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from episodes import FIX, SUBMIT, TRUE, Closing, assert_same, shell
from gymnasium.vector import SyncVectorEnv, VectorEnv

from coding_gym.errors import InvalidArgumentError
from coding_gym.vector import CodingRepairVectorEnv

ID = "coding_gym:CodingRepair-v0"
NUM_ENVS = 5
ACTIONS = [
    TRUE,
    shell("ls; git status --short; git log --oneline"),
    shell("python -c 'import sys; print(sys.argv, object())'"),
    shell("echo '# changed' >> README.md; git diff"),
    shell("exit 3"),
    '{"name": "fly", "arguments": {}}',
    "I think that I am done.",  # ends the episode if the tree has changed
    "{",
    FIX,
    SUBMIT,
    SUBMIT,
]


def play(env: VectorEnv[Any, Any, Any], num_episodes: int) -> tuple[list[Any], set[str]]:
    """Plays seeded actions until enough episodes have ended; returns results and stop reasons."""
    rng = np.random.default_rng(7)
    results: list[Any] = [env.reset(seed=11)]
    reasons: set[str] = set()
    while num_episodes > 0:
        batch = env.step([ACTIONS[int(i)] for i in rng.integers(len(ACTIONS), size=NUM_ENVS)])
        results.append(batch)
        assert len(batch[4]) <= 40  # also after a grade
        num_episodes -= int(np.sum(batch[2] | batch[3]))
        reasons |= set(batch[4]["stop_reason"])
    return results, reasons


def test_ten_episodes_are_equal_at_every_step(closing: Closing) -> None:
    make = partial(gym.make, ID, max_turns=4)
    expected, reasons = play(closing(SyncVectorEnv([make] * NUM_ENVS)), 10)
    assert reasons == {None, "submitted", "no_tool_call", "max_turns"}
    results, _ = play(closing(CodingRepairVectorEnv(NUM_ENVS, max_turns=4)), 10)
    assert len(results) == len(expected)
    for result, expected_result in zip(results, expected, strict=True):
        assert_same(result, expected_result)


@pytest.fixture
def pair(rows: list[dict[str, Any]], closing: Closing) -> tuple[Any, Any]:
    """Vector envs of three envs: Gymnasium's and this package's."""
    sync = closing(SyncVectorEnv([partial(gym.make, ID, tasks=rows)] * 3))
    return sync, closing(CodingRepairVectorEnv(3, tasks=rows))


@pytest.mark.parametrize("seed", [5, [5, None, 9], [1, 1, 1], np.int64(5)])
def test_seeds_equal_those_of_gymnasium(seed: Any, pair: tuple[Any, Any]) -> None:
    sync, ours = pair
    for env in pair:
        env.reset(seed=[4, 5, 6])
    sync_seed = int(seed) if isinstance(seed, np.integer) else seed
    assert_same(ours.reset(seed=seed), sync.reset(seed=sync_seed))
    assert_same(ours.reset(), sync.reset())


@pytest.mark.parametrize("seed", [1.5, True, [1, 2], "123", [1, 2, 0.5], np.array(4.5)])
def test_a_wrong_seed_is_refused(seed: Any, pair: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="seed"):
        pair[1].reset(seed=seed)


def test_reset_mask_equals_that_of_gymnasium(pair: tuple[Any, Any]) -> None:
    sync, ours = pair
    mask = np.array([True, False, True])
    for actions in ([TRUE] * 3, [SUBMIT, TRUE, TRUE]):
        for env in (sync, ours):
            env.reset(seed=3)
            env.step(actions)
        options = {"reset_mask": mask, "task_id": "shapes-4"}
        assert_same(ours.reset(options=dict(options)), sync.reset(options=dict(options)))
        assert_same(ours.step([TRUE] * 3), sync.step([TRUE] * 3))
