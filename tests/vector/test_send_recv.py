"""`send` and `recv`: results of some envs while actions of others are pending."""

from typing import Any

import numpy as np
import pytest
from episodes import TRUE, MakeVec, shell

from coding_gym.errors import EpisodeError, InvalidArgumentError

SLOW = shell("sleep 60")


def test_recv_returns_ready_envs_while_others_run(started: MakeVec) -> None:
    vec = started(3)
    vec.send([SLOW, shell("echo one"), shell("echo two")])
    observations, rewards, terminations, truncations, infos = vec.recv(min_envs=2)
    assert infos["env_id"].tolist() == [1, 2]
    assert infos["text"].tolist() == ["one", "two"]
    assert observations["input_ids"].shape == (2, 4096)
    assert observations["attention_mask"].shape == (2, 4096)
    assert (rewards.shape, rewards.dtype) == ((2,), np.float64)
    assert (terminations.dtype, truncations.dtype) == (np.bool_, np.bool_)
    assert all(mask.tolist() == [True, True] for key, mask in infos.items() if key[0] == "_")
    vec.send([shell("echo three")], env_ids=[2])
    assert vec.recv()[4]["env_id"].tolist() == [2]


def test_actions_follow_the_order_of_env_ids(started: MakeVec) -> None:
    vec = started(3)
    vec.send((shell("echo two"), shell("echo nought")), env_ids=np.array([2, 0]))
    infos = vec.recv(min_envs=2)[4]
    assert infos["env_id"].tolist() == [0, 2]
    assert infos["text"].tolist() == ["nought", "two"]


def test_envs_continue_independently(started: MakeVec) -> None:
    vec = started(4, max_turns=3)
    vec.send([TRUE] * 4)
    turns: dict[int, list[int]] = {index: [] for index in range(4)}
    while min(map(len, turns.values())) < 8:
        infos = vec.recv()[4]
        for index, turn in zip(infos["env_id"], infos["turn"], strict=True):
            turns[int(index)].append(int(turn))
        vec.send([TRUE] * len(infos["env_id"]), infos["env_id"])
    for numbers in turns.values():
        assert numbers == [(step + 1) % 4 for step in range(len(numbers))]


@pytest.mark.parametrize(
    ("actions", "env_ids"),
    [
        ([TRUE], [2]),
        ([TRUE], [-1]),
        ([TRUE, TRUE], [0, 0]),
        ([TRUE], [0, 1]),
        ([TRUE, TRUE], np.array([True, False])),
        ([TRUE], [0.5]),
        ([TRUE], 0),
        ([TRUE], np.array([[0]])),
        ([TRUE] * 3, None),
        ("ab", None),
    ],
)
def test_a_wrong_batch_is_refused(started: MakeVec, actions: Any, env_ids: Any) -> None:
    vec = started(2)
    with pytest.raises(InvalidArgumentError):
        vec.send(actions, env_ids)
    assert vec.step([TRUE, TRUE])[4]["turn"].tolist() == [1, 1]


def test_an_env_with_a_pending_action_refuses_a_second_one(started: MakeVec) -> None:
    vec = started(2)
    vec.send([SLOW], [1])
    mask = np.array([True, False])
    for call in (
        lambda: vec.send([TRUE], [1]),
        lambda: vec.step([TRUE, TRUE]),
        lambda: vec.call("render"),
        lambda: vec.reset(options={"reset_mask": mask}),
    ):
        with pytest.raises(EpisodeError):
            call()
    vec.send([shell("echo well")], [0])
    assert vec.recv()[4]["text"].tolist() == ["well"]


def test_recv_refuses_more_envs_than_are_pending(started: MakeVec) -> None:
    vec = started(2)
    vec.send([TRUE], [0])
    with pytest.raises(InvalidArgumentError):
        vec.recv(min_envs=2)
    assert vec.recv()[4]["env_id"].tolist() == [0]
    with pytest.raises(InvalidArgumentError):
        vec.recv()


def test_actions_before_the_first_reset_are_refused(make: MakeVec) -> None:
    vec = make(2)
    for call in (
        lambda: vec.send([TRUE], [0]),
        lambda: vec.step([TRUE, TRUE]),
        lambda: vec.reset(options={"reset_mask": np.array([True, False])}),
    ):
        with pytest.raises(EpisodeError):
            call()
    assert vec.reset()[1]["turn"].tolist() == [0, 0]
