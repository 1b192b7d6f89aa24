"""A failure of one env does not affect others; mistakes of the caller raise."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from episodes import SUBMIT, TRUE, MakeVec, shell
from sandbox_fixtures import descendants

from coding_gym.errors import (
    EpisodeError,
    InfrastructureError,
    InvalidArgumentError,
    InvalidTaskError,
    UnknownTaskError,
)
from coding_gym.vector import CodingRepairVectorEnv


def reset_and_find_process(vec: CodingRepairVectorEnv, index: int) -> int:
    """Resets one env and returns the first process of its sandbox."""
    before = set(descendants(os.getpid()))
    vec.reset(options={"reset_mask": np.arange(vec.num_envs) == index})
    (process,) = set(descendants(os.getpid())) - before
    return process


def test_a_dead_sandbox_truncates_only_its_env(started: MakeVec) -> None:
    vec = started(3)
    process = reset_and_find_process(vec, 1)
    vec.send([TRUE, shell("echo started; sleep 60"), TRUE])
    assert vec.recv(min_envs=2)[4]["env_id"].tolist() == [0, 2]
    os.kill(process, signal.SIGKILL)
    _, rewards, terminations, truncations, infos = vec.recv()
    assert (infos["env_id"].tolist(), rewards.tolist()) == ([1], [0.0])
    assert (terminations.tolist(), truncations.tolist()) == ([False], [True])
    assert infos["stop_reason"].tolist() == ["sandbox_error"]
    assert infos["mask_sample"].tolist() == [True]
    infos = vec.step([shell("echo well")] * 3)[4]
    assert infos["text"][[0, 2]].tolist() == ["well", "well"]
    assert infos["turn"].tolist() == [2, 0, 2]
    assert vec.step([shell("echo well")] * 3)[4]["text"].tolist() == ["well"] * 3


def test_a_wrong_action_raises_and_leaves_no_pending_action(started: MakeVec) -> None:
    vec = started(3)
    with pytest.raises(InvalidArgumentError) as failure:
        vec.step([SUBMIT, 7, TRUE])
    assert failure.value.__notes__ == ["raised by env 1 of a vector env"]
    _, _, terminations, _, infos = vec.step([TRUE] * 3)
    assert not terminations.any()
    assert infos["turn"].tolist() == [0, 1, 2]  # env 0 starts a new episode


def test_an_error_keeps_the_results_of_other_envs(started: MakeVec) -> None:
    vec = started(3)
    vec.send([TRUE, 7, TRUE])
    with pytest.raises(InvalidArgumentError):
        vec.recv(min_envs=3)
    vec.send([TRUE], [1])
    infos = vec.recv(min_envs=3)[4]
    assert infos["env_id"].tolist() == [0, 1, 2]
    assert infos["turn"].tolist() == [1, 1, 1]


def test_after_a_refused_task_episodes_continue_or_start(
    make: MakeVec, rows: list[dict[str, Any]]
) -> None:
    vec = make(2)
    with pytest.raises(UnknownTaskError):
        vec.reset(options={"task_id": "unknown"})
    with pytest.raises(EpisodeError):
        vec.step([TRUE, TRUE])
    vec.reset(seed=0)
    vec.step([SUBMIT, TRUE])
    with pytest.raises(UnknownTaskError):
        vec.reset(options={"task_id": "unknown"})
    assert vec.step([TRUE, TRUE])[4]["turn"].tolist() == [0, 2]  # as in a single env
    with pytest.raises(InvalidTaskError):
        vec.reset(options={"task": rows[0] | {"files": {"a": "", "a/b": ""}}})
    assert vec.step([TRUE, TRUE])[4]["turn"].tolist() == [0, 0]  # the last episodes are closed
    assert vec.step([shell("echo well")] * 2)[4]["text"].tolist() == ["well", "well"]


@pytest.mark.parametrize(
    "options",
    [
        {"reset_mask": np.array([1, 0])},
        {"reset_mask": np.array([True])},
        {"reset_mask": np.array([False, False])},
        {"unknown": 1},
        7,
    ],
    ids=str,
)
def test_invalid_reset_options_are_refused(started: MakeVec, options: Any) -> None:
    vec = started(2)
    with pytest.raises(InvalidArgumentError):
        vec.reset(options=options)
    assert vec.reset()[1]["turn"].tolist() == [0, 0]


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Makes SIGINT raise KeyboardInterrupt, also if a shell started pytest in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupted_step_requires_a_reset(
    started: MakeVec, monkeypatch: pytest.MonkeyPatch
) -> None:
    vec = started(2)
    original_step = vec.envs[0].step

    def step(action: str) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return original_step(action)

    with monkeypatch.context() as patch:
        patch.setattr(vec.envs[0], "step", step)
        with pytest.raises(KeyboardInterrupt):
            vec.step([shell("sleep 1")] * 2)
        with pytest.raises(EpisodeError):
            vec.step([TRUE, TRUE])
        vec.reset(seed=0)
    assert vec.step([TRUE, TRUE])[4]["turn"].tolist() == [1, 1]


def test_a_failing_wrapper_does_not_affect_its_env(
    started: MakeVec, monkeypatch: pytest.MonkeyPatch
) -> None:
    vec = started(2)
    original_step = vec.envs[1].step

    def step(action: str) -> None:
        original_step(action)
        raise InfrastructureError("the record could not be written")

    with monkeypatch.context() as patch:
        patch.setattr(vec.envs[1], "step", step)
        with pytest.raises(InfrastructureError):
            vec.step([TRUE, SUBMIT])
    assert vec.step([TRUE, TRUE])[4]["turn"].tolist() == [2, 0]
