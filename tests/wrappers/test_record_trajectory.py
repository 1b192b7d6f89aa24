"""Episodes recorded in a folder."""

import json
import resource
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episodes import SUBMIT, Closing, MakeEnv, raising, shell
from gymnasium.wrappers import TransformReward
from shelf_menu import RUN_TESTS
from shelf_menu import make as make_menu

import coding_gym
from coding_gym import Completion, Stop, StopReason, Trajectory
from coding_gym.calls import ModelCall
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import (
    EpisodeError,
    InfrastructureError,
    InvalidArgumentError,
    UnknownTaskError,
)
from coding_gym.wrappers import RecordTrajectory, ShapedReward
from coding_gym.wrappers.record_trajectory import read_trajectories, write_trajectory

LOOK, FIX = shell("ls"), shell("sed -i s/+/*/ shapes.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folders"


@pytest.fixture
def core(make_env: MakeEnv) -> CodingRepairEnv:
    return make_env()


def test_an_episode_is_one_file_with_sampled_ids(core: CodingRepairEnv, folder: Path) -> None:
    env = RecordTrajectory(core, folder)
    env.reset(seed=3)
    call = ModelCall(completion_tokens=3, cost=0.5, num_retries=1, prompt_ids=(7, 8))
    env.step(Completion(FIX, [3, 1, 2], [-0.5, -0.25, -1.0], model_call=call))
    assert not any(folder.iterdir())
    env.step(SUBMIT)
    (trajectory,) = read_trajectories(folder)
    assert trajectory == replace(core.episode.trajectory(), seed=3)
    assert trajectory.tools == tuple(core.toolset.schemas)
    sums = {"model_calls": 1, "completion_tokens": 3, "num_retries": 1}
    assert trajectory.usage == {"turns": 2, "tool_calls": 2} | sums
    assert trajectory.turns[0].model_call == call
    assert trajectory.resolved
    assert trajectory.turns[0].token_ids == (3, 1, 2)
    assert trajectory.turns[0].logprobs == (-0.5, -0.25, -1.0)
    env.reset()
    env.step(Stop("enough"))
    assert [(t.stop_reason, t.cost) for t in read_trajectories(folder)] == [
        (StopReason.SUBMITTED, 0.5),
        (StopReason.STOPPED, None),
    ]


def test_a_record_has_shaped_rewards_and_names_their_parts(
    core: CodingRepairEnv, folder: Path
) -> None:
    parts = [{"name": "file_match", "weight": 0.2}]
    env = RecordTrajectory(ShapedReward(core, parts), folder)
    env.reset()
    env.step(FIX)
    env.step(SUBMIT)
    (trajectory,) = read_trajectories(folder)
    assert [turn.reward for turn in trajectory.turns] == [0.0, 1.2]
    assert trajectory.turns[1].reward_parts == {"resolved": 1.0, "file_match": 0.2}


def test_a_turn_without_a_result_does_not_shift_the_rewards(
    core: CodingRepairEnv, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shaped = TransformReward(core, lambda reward: float(reward) + 0.5)
    env = RecordTrajectory(shaped, folder)
    env.reset()
    env.step(LOOK)
    with monkeypatch.context() as patch:
        patch.setattr(shaped, "func", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            env.step(FIX)  # is played, but its result is lost
    env.step(SUBMIT)
    (trajectory,) = read_trajectories(folder)
    assert [turn.reward for turn in trajectory.turns] == [0.5, 0.0, 1.5]


def test_a_discarded_episode_is_not_recorded(core: CodingRepairEnv, folder: Path) -> None:
    env = RecordTrajectory(core, folder)
    env.reset()
    env.step(LOOK)
    env.reset()
    env.step(LOOK)
    env.close()
    assert not any(folder.iterdir())


def test_a_record_that_cannot_be_written_raises(core: CodingRepairEnv, folder: Path) -> None:
    env = RecordTrajectory(core, folder)
    folder.rmdir()
    folder.write_text("")
    env.reset()
    with pytest.raises(InfrastructureError, match="shapes-area"):
        env.step(SUBMIT)


def test_a_refused_reset_does_not_change_the_record(tmp_path: Path, closing: Closing) -> None:
    folder = tmp_path / "episodes"
    other = closing(make_menu(5))
    with pytest.raises(EpisodeError):
        coding_gym.snapshot(other)
    other.reset()
    env = closing(RecordTrajectory(make_menu(8), folder))
    env.reset()
    env.step(RUN_TESTS)
    for snapshot in (coding_gym.snapshot(other), coding_gym.snapshot(env.unwrapped)):
        with pytest.raises(InvalidArgumentError, match="num_candidates"):
            env.reset(options={"snapshot": snapshot})
    with pytest.raises(InvalidArgumentError, match=r"coding_gym\.snapshot"):
        env.reset(options={"snapshot": 3})
    with pytest.raises(UnknownTaskError):
        env.reset(options={"task_id": "nowhere"})
    assert not any(folder.iterdir())
    env.step(Stop("enough"))
    (trajectory,) = read_trajectories(folder)
    assert [turn.reward_parts for turn in trajectory.turns][1] == {"resolved": 0.0}
    assert len(trajectory.turns) == 2


# -- Files ----------------------------------------------------------------------------------------


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
