"""Records as token ids for a trainer."""

from dataclasses import replace
from typing import Any

import pytest
from episodes import SUBMIT, shell, shells

from coding_gym import Completion, Stop, Trajectory
from coding_gym.adapters.samples import segments, training_example
from coding_gym.calls import ModelCall
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import InvalidArgumentError
from coding_gym.trajectory import Turn
from coding_gym.wrappers import TranscriptObservation


def turn(prompt: list[int], reply: list[int], prefix: int = 0, **fields: Any) -> Turn:
    call = ModelCall(prefix_length=prefix, prompt_ids=tuple(prompt))
    defaults = {"exact": True, "logprobs": (-0.5,) * len(reply), "model_call": call}
    return Turn(action="…", token_ids=tuple(reply), **defaults | fields)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([], []),
        ([turn([1], [2]), turn([3], [4], 2)], [([1], [2, 3, 4], [1, 0, 1])]),
        # The history was rewritten from its second id on.
        ([turn([1, 2], [3]), turn([9], [4], 1)], [([1, 2], [3], [1]), ([1, 9], [4], [1])]),
        # The same prompt was sent again.
        ([turn([1], [2]), turn([], [3], 1)], [([1], [2], [1]), ([1], [3], [1])]),
        # A second agent sends a request between two requests of the first agent.
        (
            [turn([1], [2]), turn([7], [8]), turn([1, 2, 3], [4])],
            [([1], [2, 3, 4], [1, 0, 1]), ([7], [8], [1])],
        ),
        # A reply without ids, and a turn without a request.
        ([turn([1], [2]), turn([], [5], exact=False), Turn(action="")], [([1], [2], [1])]),
    ],
)
def test_segments_are_prompts_that_continue_one_another(turns: list[Turn], expected: Any) -> None:
    samples = segments(Trajectory(task_id="any", turns=tuple(turns)))
    names = ("prompt_ids", "completion_ids", "env_mask")
    assert [tuple(sample[name] for name in names) for sample in samples] == expected


def test_segment_with_an_unknown_logprob_has_no_logprobs() -> None:
    turns = (turn([1], [2], logprobs=None), turn([3], [4], 2))
    (sample,) = segments(Trajectory(task_id="any", turns=turns))
    assert sample["logprobs"] is None


def test_training_example_has_the_recorded_prompts() -> None:
    prompts = turn([151_644], [151_645], weight_version="1"), turn([7], [8], 2)
    record = Trajectory(task_id="any", turns=(*prompts, Turn(action="", exact=True)))
    assert training_example(record) == {
        **segments(record)[0],
        "exact": [True, True],
        "weight_versions": ["1", None],
    }
    rewritten = Trajectory(task_id="any", turns=(prompts[0], turn([9], [8], 1)))
    with pytest.raises(InvalidArgumentError, match="2 segments"):
        training_example(rewritten)


def test_an_episode_without_ids_gives_no_sample_and_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert segments(Trajectory(task_id="any", turns=(turn([], [5], exact=False),))) == []
    assert "any: no training sample" in caplog.text


def play(row: dict[str, Any], *actions: str) -> tuple[Trajectory, list[int]]:
    """Plays actions; returns the trajectory and the observed ids of the whole chat."""
    env = TranscriptObservation(CodingRepairEnv(tasks=[row]))
    env.reset()
    for action in actions:
        observation, *_ = env.step(action)
    trajectory = env.unwrapped.episode.trajectory()  # type: ignore[attr-defined]
    env.close()
    ids = observation["input_ids"][observation["attention_mask"] == 1]
    return Trajectory.from_json(trajectory.to_json()), [int(i) for i in ids]


def test_the_mask_selects_the_sampled_ids(tiny_row: dict[str, Any]) -> None:
    end = 16_382
    replies = [[9, 8, 7], [6, 5, end], [4]]
    texts = [shell("ls"), shells("pwd", "ls"), SUBMIT]
    pairs = zip(texts, replies, strict=True)
    actions = [Completion(text, ids, [-float(i) for i in ids]) for text, ids in pairs]
    trajectory, observed = play(tiny_row, *actions)
    example = training_example(trajectory)
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


def test_encoded_replies_are_masked_unless_included(tiny_row: dict[str, Any]) -> None:
    look = shell("ls")
    trajectory, _ = play(tiny_row, look, Completion(look, [1, 2]), Stop("enough"))
    example = training_example(trajectory)
    assert trajectory.turns[2].token_ids == ()  # a `Stop` has no ids
    assert example["exact"] == [False, True]
    assert sum(example["env_mask"]) == 2
    assert example["logprobs"] is None  # one reply lacks logprobs
    whole = training_example(trajectory, include_inexact=True)
    assert sum(whole["env_mask"]) == 2 + len(trajectory.turns[0].token_ids) + 1  # and its end token
    assert whole["completion_ids"] == example["completion_ids"]
    with pytest.raises(InvalidArgumentError, match="token_ids"):  # no id would be trained
        training_example(replace(trajectory, turns=trajectory.turns[:1]))
    served = replace(trajectory.turns[1], token_ids=(151_644,))
    for changes in ({"tools": ()}, {"turns": (trajectory.turns[0], served)}):
        with pytest.raises(InvalidArgumentError):
            training_example(replace(trajectory, **changes))
