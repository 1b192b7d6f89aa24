"""The vector env returns exactly what Gymnasium's `SyncVectorEnv` returns."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from episodes import FIX, SUBMIT, TRUE, Closing, assert_same, shell
from gymnasium.vector import SyncVectorEnv, VectorEnv

from coding_gym.errors import InvalidArgumentError
from coding_gym.vector import make_vec

ID = "coding_gym:CodingRepair-v0"
NUM_ENVS = 5
ACTIONS = [
    TRUE,
    shell("ls; git status --short; git log --oneline"),
    shell("python -c 'import sys; print(sys.argv, object())'"),
    shell("echo '# changed' >> README.md; git diff"),
    shell("exit 3"),
    '{"name": "fly", "arguments": {}}',
    "I think that I am done.",  # ends the episode where the tree is changed
    "{",
    FIX,
    SUBMIT,
    SUBMIT,
]


def play(env: VectorEnv[Any, Any, Any], num_episodes: int) -> tuple[list[Any], set[str]]:
    """Returns all results until this number of episodes has ended, and their stop reasons."""
    rng = np.random.default_rng(7)
    seen: list[Any] = [env.reset(seed=11)]
    reasons: set[str] = set()
    while num_episodes > 0:
        batch = env.step([ACTIONS[int(i)] for i in rng.integers(len(ACTIONS), size=NUM_ENVS)])
        seen.append(batch)
        assert len(batch[4]) <= 40  # also after a grade
        num_episodes -= int(np.sum(batch[2] | batch[3]))
        reasons |= set(batch[4]["stop_reason"])
    return seen, reasons


def test_ten_episodes_are_the_same_step_for_step(closing: Closing) -> None:
    make = partial(gym.make, ID, max_turns=4)
    expected, reasons = play(closing(SyncVectorEnv([make] * NUM_ENVS)), 10)
    assert reasons == {None, "submitted", "no_tool_call", "max_turns"}
    seen, _ = play(closing(make_vec(NUM_ENVS, max_turns=4)), 10)
    assert len(seen) == len(expected)
    for ours, theirs in zip(seen, expected, strict=True):
        assert_same(ours, theirs)


@pytest.fixture
def pair(rows: list[dict[str, Any]], closing: Closing) -> tuple[Any, Any]:
    """Gymnasium's vector env of three envs, and ours."""
    sync = closing(SyncVectorEnv([partial(gym.make, ID, tasks=rows)] * 3))
    return sync, closing(make_vec(3, tasks=rows))


@pytest.mark.parametrize("seed", [5, [5, None, 9], [1, 1, 1], np.int64(5)])
def test_seeds_equal_those_of_gymnasium(seed: Any, pair: tuple[Any, Any]) -> None:
    sync, ours = pair
    for env in (sync, ours):
        env.reset(seed=[4, 5, 6])
    as_gymnasium_takes_it = int(seed) if isinstance(seed, np.integer) else seed
    assert_same(ours.reset(seed=seed), sync.reset(seed=as_gymnasium_takes_it))
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
