"""Going on from a moment of an env: the same actions give the same bytes."""

import copy
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np
import pytest
from episodes import FIX, SUBMIT, Closing, Env, as_text, play, shell

import coding_gym
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.grading import grade
from coding_gym.tools import toolset_names

TIMES = "s/[A-Z][a-z][a-z] [ 0-9][0-9] [0-9:]* / /"  # of files, which a clock wrote
TASKS = itertools.cycle(["ledgerline-month-overlap", "cronwise-working-days"])
BEFORE = [
    "no call in here",
    shell(
        "f=$(git ls-files | head -n 1); echo '# changed' >> $f; git rm -q $(git ls-files | tail -1)"
    ),
    shell("mkdir -p /tmp/a/b; echo one > /tmp/a/b/c; echo two > ~/note; ln -s /tmp/a link"),
    shell(
        "git checkout -q -b mine; git commit -qam mine; echo three > new.txt; chmod 711 . new.txt"
    ),
]
AFTER = [
    shell("git status; git log --format=%s; git branch; git diff main | head -c 1500"),
    shell(f"ls -lA . /tmp/a/b ~ | sed '{TIMES}'; cat /tmp/a/b/c ~/note"),
    '{"name": "fly", "arguments": {}}',
    shell("rm -r /tmp/a; readlink link; cat link/b/c; python -m pytest -q 2>&1 | tail -n 3"),
    SUBMIT,
]


@pytest.fixture
def make(tiny_row: dict[str, Any], closing: Closing) -> Callable[..., Env]:
    usual = {"tasks": [tiny_row]}
    return lambda **arguments: closing(gym.make("CodingRepair-v0", **usual | arguments))


@pytest.fixture
def env(make: Callable[..., Env]) -> Env:
    """One whose first episode has begun."""
    env = make()
    env.reset()
    return env


@pytest.mark.slow
@pytest.mark.parametrize(("toolset", "task_id"), list(zip(toolset_names(), TASKS, strict=False)))
def test_a_restored_env_and_a_fork_go_on_as_the_original_did(
    toolset: str, task_id: str, make: Callable[..., Env], closing: Closing
) -> None:
    arguments = {"tasks": "bundled", "toolset": toolset, "max_obs_tokens": 512}
    env = make(**arguments)
    env.reset(seed=5, options={"task_id": task_id})
    play(env, BEFORE[:-1])
    last = as_text(*(part for number, part in enumerate(env.step(BEFORE[-1])) if number in (0, 4)))
    moment = coding_gym.snapshot(env)
    forked = closing(coding_gym.fork(env))
    other = make(**arguments)
    expected = play(env, AFTER)
    following = as_text(*env.reset())
    sample = env.action_space.sample()

    assert as_text(*coding_gym.restore(env, moment)) == last
    assert as_text(*coding_gym.restore(other, moment)) == last
    for again in (env, other, forked):
        assert play(again, AFTER) == expected
        assert as_text(*again.reset()) == following
        assert again.action_space.sample() == sample


@pytest.mark.parametrize("sampler", ["uniform", "sequential", "shuffled"])
def test_the_sequence_of_tasks_goes_on_as_it_did(
    sampler: str, tiny_row: dict[str, Any], make: Callable[..., Env]
) -> None:
    rows = [tiny_row | {"instance_id": f"shapes-{number}"} for number in range(5)]
    env = make(tasks=rows, sampler=sampler)
    env.reset(seed=3)
    env.reset()
    moment = coding_gym.snapshot(env)
    expected = [env.reset()[1]["task_id"] for _ in range(9)]
    assert len(set(expected)) > 2
    for _ in range(2):
        coding_gym.restore(env, moment)
        assert [env.reset()[1]["task_id"] for _ in range(9)] == expected
    assert np.array_equal(env.unwrapped.np_random_seed, 3)


def test_an_unseeded_env_goes_on_alike_too(env: Env, closing: Closing) -> None:
    forked = closing(coding_gym.fork(env))
    assert forked.action_space is not env.action_space
    assert [forked.action_space.sample() for _ in range(5)] == [
        env.action_space.sample() for _ in range(5)
    ]
    assert forked.unwrapped.np_random is not env.unwrapped.np_random
    assert forked.unwrapped.np_random.random() == env.unwrapped.np_random.random()


def test_a_branch_is_graded_once_and_by_itself(
    env: Env, closing: Closing, monkeypatch: pytest.MonkeyPatch
) -> None:
    grading = mock.Mock(wraps=grade)
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", grading)
    env.step(shell("touch new.py"))
    forks = [closing(coding_gym.fork(env)) for _ in range(2)]
    assert not grading.called
    env.close()  # what goes on from here needs it no more
    forks[0].step(FIX)
    assert [fork.step(SUBMIT)[1] for fork in forks] == [1.0, 0.0]
    patches = [call.args[2].text for call in grading.call_args_list]
    assert ["width *" in text for text in patches] == [True, False]


def test_reset_begins_at_a_snapshot(
    tiny_row: dict[str, Any], env: Env, make: Callable[..., Env]
) -> None:
    rows = [tiny_row | {"instance_id": f"shapes-{number}"} for number in range(9)]
    env.step(FIX)
    moment = coding_gym.snapshot(env)
    other = make(tasks=rows, sampler="sequential")
    assert other.reset()[1]["task_id"] == "shapes-0"
    _, info = other.reset(options={"snapshot": moment})
    assert (info["task_id"], info["turn"]) == ("shapes-area", 1)
    assert other.step(SUBMIT)[1] == 1.0
    assert other.reset()[1]["task_id"] == "shapes-1"
    with pytest.raises(InvalidArgumentError):
        coding_gym.restore(other, moment)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"max_obs_tokens": 64}, "max_obs_tokens=128, this one has 64"),
        ({"max_turns": 3}, r"limits=Limits\(max_turns=50,"),
        ({"tool_format": "json"}, "tool_format='auto', this one has 'json'"),
        ({"sandbox": {"limits": {"num_processes": 90}}}, r"sandbox=SandboxOptions\(name='auto'"),
        ({"command_timeout_s": 9}, "command_timeout_s=120.0, this one has 9.0"),
    ],
)
def test_an_env_with_other_settings_refuses_and_goes_on(
    arguments: dict[str, Any], named: str, make: Callable[..., Env]
) -> None:
    env = make(max_obs_tokens=128)
    env.reset()
    moment = coding_gym.snapshot(env)
    other = make(**{"max_obs_tokens": 128} | arguments)
    other.reset()
    other.step(FIX)
    for refused in (
        lambda: coding_gym.restore(other, moment),
        lambda: other.reset(options={"snapshot": moment}),
    ):
        with pytest.raises(InvalidArgumentError, match=named):
            refused()
    assert other.step(SUBMIT)[1] == 1.0


def test_only_a_running_episode_has_a_moment(make: Callable[..., Env]) -> None:
    env = make()
    asks: list[Callable[[Env], object]] = [coding_gym.snapshot, coding_gym.fork]
    for ask in asks:
        with pytest.raises(EpisodeError):
            ask(env)
    env.reset()
    env.step(SUBMIT)
    for ask in asks:
        with pytest.raises(EpisodeError):
            ask(env)
    env.reset()
    env.close()
    for ask in asks:
        with pytest.raises(EpisodeError, match="closed"):
            ask(env)


def test_an_action_has_no_moment(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    toolset = env.unwrapped.toolset  # type: ignore[attr-defined]
    execute, begun, go_on = toolset.execute, threading.Event(), threading.Event()

    def slowly(call: Any, context: Any) -> Any:
        begun.set()
        go_on.wait(30)
        return execute(call, context)

    monkeypatch.setitem(vars(toolset), "execute", slowly)
    thread = threading.Thread(target=env.step, args=(shell("touch new.py"),))
    thread.start()
    begun.wait(30)
    asks: list[Callable[[Env], object]] = [coding_gym.snapshot, lambda env: env.step(SUBMIT)]
    try:
        for ask in asks:
            with pytest.raises(EpisodeError):
                ask(env)
    finally:
        go_on.set()
        thread.join()
    with ThreadPoolExecutor(4) as pool:  # snapshots may be taken at once
        moments = list(pool.map(coding_gym.snapshot, [env] * 8))
    assert [moment.episode.usage.turns for moment in moments] == [1] * 8


def test_other_snapshots_and_envs_are_refused(make: Callable[..., Env], closing: Closing) -> None:
    env = make()
    with pytest.raises(InvalidArgumentError, match="coding_gym"):
        coding_gym.restore(env, "x")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="coding_gym"):
        env.reset(options={"snapshot": None})
    with pytest.raises(InvalidArgumentError, match="task_id"):
        env.reset(options={"task_id": "shapes-area", "snapshot": None})
    cartpole = closing(gym.make("CartPole-v1"))
    asks: list[Callable[[Env], object]] = [coding_gym.snapshot, coding_gym.fork]
    for ask in asks:
        with pytest.raises(InvalidArgumentError):
            ask(cartpole)


def test_a_snapshot_can_be_copied_and_outlives_its_env(env: Env, make: Callable[..., Env]) -> None:
    env.step(FIX)
    moment = copy.deepcopy(coding_gym.snapshot(env))
    env.close()
    other = make()
    coding_gym.restore(other, moment)
    assert other.step(SUBMIT)[1] == 1.0
