"""Episodes as token ids for a trainer."""

from dataclasses import replace
from typing import Any

import pytest
from episodes import SUBMIT, shell, shells

from coding_gym import Completion, Stop, Trajectory
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import InvalidArgumentError
from coding_gym.wrappers import TranscriptObservation


def play(row: dict[str, Any], *actions: str) -> tuple[Trajectory, list[int]]:
    """Returns the record, and the ids of the whole chat as they were observed."""
    env = TranscriptObservation(CodingRepairEnv(tasks=[row]))
    env.reset()
    for action in actions:
        observation, *_ = env.step(action)
    trajectory = env.unwrapped.episode.trajectory()  # type: ignore[attr-defined]
    env.close()
    ids = observation["input_ids"][observation["attention_mask"] == 1]
    return Trajectory.from_json(trajectory.to_json()), [int(i) for i in ids]


def test_sampled_ids_are_masked_in_where_they_were_observed(tiny_row: dict[str, Any]) -> None:
    end = 16_382
    replies = [[9, 8, 7], [6, 5, end], [4]]
    texts = [shell("ls"), shells("pwd", "ls"), SUBMIT]
    pairs = zip(texts, replies, strict=True)
    actions = [Completion(text, ids, [-float(i) for i in ids]) for text, ids in pairs]
    trajectory, observed = play(tiny_row, *actions)
    example = trajectory.to_training_example()
    ids = example["prompt_ids"] + example["completion_ids"]
    assert ids == observed[: len(ids)]
    mask = example["env_mask"]
    assert len(mask) == len(example["completion_ids"]) == len(example["logprobs"])
    sampled = [i for i, is_in in zip(example["completion_ids"], mask, strict=True) if is_in]
    assert sampled == [9, 8, 7, 6, 5, end, 4]
    assert example["logprobs"] == [
        -i if m else 0.0 for i, m in zip(ids[-len(mask) :], mask, strict=True)
    ]
    assert mask[0] == mask[-1] == 1
    assert example["exact"] == [True, True, True]


def test_replies_not_sampled_are_masked_out_unless_asked_for(tiny_row: dict[str, Any]) -> None:
    look = shell("ls")
    trajectory, _ = play(tiny_row, look, Completion(look, [1, 2]), Stop("enough"))
    example = trajectory.to_training_example()
    assert example["exact"] == [False, True]
    assert sum(example["env_mask"]) == 2
    assert example["logprobs"] is None  # not known of ids that were sampled
    whole = trajectory.to_training_example(include_inexact=True)
    assert sum(whole["env_mask"]) == 2 + len(trajectory.turns[0].token_ids)
    assert whole["completion_ids"] == example["completion_ids"]
    with pytest.raises(InvalidArgumentError):
        replace(trajectory, tools=()).to_training_example()
