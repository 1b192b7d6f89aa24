"""`send` and `recv`: results of some envs while actions of others are pending."""

from typing import Any

import numpy as np
import pytest
from episodes import TRUE, MakeVec, shell

from coding_gym.errors import EpisodeError, InvalidArgumentError

LATE = shell("sleep 60")


def test_recv_returns_ready_envs_while_others_work(started: MakeVec) -> None:
    vec = started(3)
    vec.send([LATE, shell("echo one"), shell("echo two")])
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
    while min(len(seen) for seen in turns.values()) < 8:
        infos = vec.recv()[4]
        for place, index in enumerate(infos["env_id"]):
            turns[int(index)].append(int(infos["turn"][place]))
        vec.send([TRUE] * len(infos["env_id"]), infos["env_id"])
    for seen in turns.values():
        assert seen == [(number + 1) % 4 for number in range(len(seen))]


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
    vec.send([LATE], [1])
    mask = np.array([True, False])
    for refused in (
        lambda: vec.send([TRUE], [1]),
        lambda: vec.step([TRUE, TRUE]),
        lambda: vec.call("render"),
        lambda: vec.reset(options={"reset_mask": mask}),
    ):
        with pytest.raises(EpisodeError):
            refused()
    vec.send([shell("echo well")], [0])
    assert vec.recv()[4]["text"].tolist() == ["well"]


def test_recv_refuses_to_wait_for_more_than_is_pending(started: MakeVec) -> None:
    vec = started(2)
    vec.send([TRUE], [0])
    with pytest.raises(InvalidArgumentError):
        vec.recv(min_envs=2)
    assert vec.recv()[4]["env_id"].tolist() == [0]
    with pytest.raises(InvalidArgumentError):
        vec.recv()


def test_nothing_can_be_sent_before_the_first_reset(make: MakeVec) -> None:
    vec = make(2)
    for early in (
        lambda: vec.send([TRUE], [0]),
        lambda: vec.step([TRUE, TRUE]),
        lambda: vec.reset(options={"reset_mask": np.array([True, False])}),
    ):
        with pytest.raises(EpisodeError):
            early()
    assert vec.reset()[1]["turn"].tolist() == [0, 0]
