"""Trajectories as files in a folder, and as token ids for a trainer."""

import json
import resource
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import SUBMIT, shell, shells

from coding_gym import Completion, Stop, Trajectory
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import InfrastructureError, InvalidArgumentError
from coding_gym.trajectory import read_trajectories, write_trajectory
from coding_gym.wrappers import TranscriptObservation


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folders"


def test_many_writers_lose_no_trajectory(folder: Path) -> None:
    def write(name: str) -> None:
        for number in range(20):
            write_trajectory(folder, Trajectory(task_id=name, attempt=number))

    names = [f"writer-{number}" for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, names))
    written = list(read_trajectories(folder))
    for name in names:
        assert [item.attempt for item in written if item.task_id == name] == list(range(20))


def test_a_full_disk_leaves_whole_files_and_raises(folder: Path) -> None:
    write_trajectory(folder, Trajectory(task_id="small"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.raises(InfrastructureError):
            write_trajectory(folder, Trajectory(task_id="large", patch="x" * 4000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert len(list(folder.iterdir())) == 1
    assert [item.task_id for item in read_trajectories(folder)] == ["small"]


CALL = {"id": "a", "function": {"name": "shell", "arguments": "{}"}}
GOOD = {"role": "assistant", "content": "", "tool_calls": [CALL]}


def test_a_file_of_another_kind_is_named(folder: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        list(read_trajectories(folder))
    folder.mkdir(parents=True)
    path = folder / "a.json"
    calls: list[Any] = [5, [{}], [CALL, CALL["function"]], [CALL | {"function": {"name": "shell"}}]]
    for message in ({}, *(GOOD | {"tool_calls": call} for call in calls)):
        path.write_text(json.dumps({"task_id": "x", "messages": [GOOD, message]}))
        with pytest.raises(InvalidArgumentError, match=r"a\.json.*messages\[1\]"):
            list(read_trajectories(folder))
    path.write_text(json.dumps({"task_id": "x", "tools": [{"function": {}}]}))
    with pytest.raises(InvalidArgumentError, match=r"a\.json.*tools\[0\]"):
        list(read_trajectories(folder))
    for data in (b"\x1f\x8b\xff\n", b"[]\n", b'{"turns": [{"token_ids": []}]}\n', b'{"task_id'):
        path.write_bytes(data)
        with pytest.raises(InvalidArgumentError, match=r"a\.json"):
            list(read_trajectories(folder))


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


def test_encoded_replies_are_masked_unless_included(tiny_row: dict[str, Any]) -> None:
    look = shell("ls")
    trajectory, _ = play(tiny_row, look, Completion(look, [1, 2]), Stop("enough"))
    example = trajectory.to_training_example()
    assert trajectory.turns[2].token_ids == ()  # a `Stop` has no ids
    assert example["exact"] == [False, True]
    assert sum(example["env_mask"]) == 2
    assert example["logprobs"] is None  # one reply lacks logprobs
    whole = trajectory.to_training_example(include_inexact=True)
    assert sum(whole["env_mask"]) == 2 + len(trajectory.turns[0].token_ids) + 1  # and its end token
    assert whole["completion_ids"] == example["completion_ids"]
    served = replace(trajectory.turns[1], token_ids=(151_644,))
    for changes in ({"tools": ()}, {"turns": (trajectory.turns[0], served)}):
        with pytest.raises(InvalidArgumentError):
            replace(trajectory, **changes).to_training_example()
