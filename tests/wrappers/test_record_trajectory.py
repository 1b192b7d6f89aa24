"""Episodes recorded in a folder."""

import json
import os
import resource
import signal
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from episodes import SUBMIT, Closing, MakeEnv, raising, run_command, shell
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
from coding_gym.evaluation import report
from coding_gym.evaluation.evaluate import evaluate
from coding_gym.run_folder import RunFolder
from coding_gym.viewer.pages import Run
from coding_gym.wrappers import RecordTrajectory, ShapedReward

LOOK, FIX = shell("ls"), shell("sed -i s/+/*/ shapes.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folders"


@pytest.fixture
def core(make_env: MakeEnv) -> CodingRepairEnv:
    return make_env()


def recorded(folder: Path) -> list[Trajectory]:
    """Returns the recorded episodes; the first episode creates the run."""
    return list(RunFolder.open(folder).trajectories()) if any(folder.glob("*.json")) else []


def test_an_episode_is_one_file_with_sampled_ids(core: CodingRepairEnv, folder: Path) -> None:
    env = RecordTrajectory(core, folder)
    env.reset(seed=3)
    call = ModelCall(completion_tokens=3, cost=0.5, num_retries=1, prompt_ids=(7, 8))
    env.step(Completion(FIX, [3, 1, 2], [-0.5, -0.25, -1.0], model_call=call))
    assert recorded(folder) == []
    env.step(SUBMIT)
    (trajectory,) = recorded(folder)
    run_id = RunFolder.open(folder).config["run_id"]
    episode = replace(core.episode.trajectory(), seed=3, run_id=run_id)
    assert replace(trajectory, started_at="") == episode
    assert trajectory.started_at
    assert trajectory.tools == tuple(core.toolset.schemas)
    sums = {"model_calls": 1, "completion_tokens": 3, "num_retries": 1}
    assert trajectory.usage == {"turns": 2, "tool_calls": 2} | sums
    assert trajectory.turns[0].model_call == call
    assert trajectory.resolved
    assert trajectory.turns[0].token_ids == (3, 1, 2)
    assert trajectory.turns[0].logprobs == (-0.5, -0.25, -1.0)
    env.reset()
    env.step(Stop("enough"))
    assert [(t.stop_reason, t.cost) for t in recorded(folder)] == [
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
    (trajectory,) = recorded(folder)
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
    (trajectory,) = recorded(folder)
    assert [turn.reward for turn in trajectory.turns] == [0.5, 0.0, 1.5]


def test_a_discarded_episode_is_not_recorded(core: CodingRepairEnv, folder: Path) -> None:
    env = RecordTrajectory(core, folder)
    env.reset()
    env.step(LOOK)
    env.reset()
    env.step(LOOK)
    env.close()
    assert recorded(folder) == []


def test_a_record_that_cannot_be_written_raises(core: CodingRepairEnv, folder: Path) -> None:
    env = RecordTrajectory(core, folder)
    (folder / "attempts").rmdir()
    (folder / "attempts").write_text("")
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
    assert recorded(folder) == []
    env.step(Stop("enough"))
    (trajectory,) = recorded(folder)
    assert [turn.reward_parts for turn in trajectory.turns][1] == {"resolved": 0.0}
    assert len(trajectory.turns) == 2


# -- The run folder -------------------------------------------------------------------------------


def record(folder: Path, *task_ids: str, **attributes: Any) -> None:
    """Records an episode of each task, in order."""
    run = RunFolder.recorder(folder)
    for task_id in task_ids:
        run.record(Trajectory(task_id=task_id, **attributes))


def test_commands_on_runs_read_recorded_episodes(
    rows: Path, make_env: MakeEnv, folder: Path, tmp_path: Path
) -> None:
    env = RecordTrajectory(make_env(tasks=str(rows)), folder)
    for actions in ([FIX, SUBMIT], [SUBMIT], [LOOK, SUBMIT], [FIX, SUBMIT]):
        env.reset()
        for action in actions:
            env.step(action)
    result = report(folder)
    assert result.config["agent"] == {"name": "recorded", "model": ""}
    assert result.config["episode"]["toolset"] == "nano"
    assert (result.num_resolved, result.num_attempts, result.values("exact_match")) == (
        *(2, 4),
        {"shapes-area": [1.0, 0.0, 0.0, 1.0]},  # the tasks of the source have the gold patches
    )
    assert [estimate.value for estimate in result.pass_at_k.values()] == [5 / 6, 1.0]
    assert not any("incomplete" in caveat for caveat in result.caveats)
    assert "exact_match" in run_command("report", folder)
    assert "attempt 3: resolved" in run_command("show", folder, "shapes-area", "3")
    assert "0 flips" in run_command("regrade", folder)
    run_command("export", folder, "--format", "sft", "--out", tmp_path / "sft")
    assert len((tmp_path / "sft/train.jsonl").read_text().splitlines()) == 2
    viewed = Run(folder, "recorded")
    viewed.complete()
    sizes = [viewed.latest[name] for name in ("num_tasks", "attempts", "planned", "num_resolved")]
    assert sizes == [1, 4, 4, 2]


def test_only_recorders_continue_a_recorded_run(folder: Path, tmp_path: Path) -> None:
    writers = [RunFolder.recorder(folder) for _ in range(2)]  # two processes that start together
    writers[0].record(Trajectory(task_id="a", toolset="nano"))
    config = RunFolder.open(folder).config
    writers[1].record(Trajectory(task_id="a", toolset="bash"))
    record(folder, "b", "a", toolset="bash")
    assert RunFolder.open(folder).config == config
    assert [(item.task_id, item.attempt, item.toolset) for item in recorded(folder)] == [
        *(("a", 0, "nano"), ("a", 1, "bash"), ("a", 2, "bash")),
        ("b", 0, "bash"),
    ]
    with pytest.raises(InvalidArgumentError, match="recorded"):
        evaluate(folder, resume=True)
    evaluate(tmp_path / "run", "noop", tasks={"task_ids": ["cronwise-working-days"]})
    with pytest.raises(InvalidArgumentError, match="another folder"):
        RunFolder.recorder(tmp_path / "run")
    (folder / "attempts").rename(tmp_path / "moved")
    (folder / "attempts").symlink_to(tmp_path / "moved")
    with pytest.raises(InvalidArgumentError, match="link"):
        RunFolder.recorder(folder)


def test_an_infrastructure_failure_does_not_use_a_number(folder: Path) -> None:
    record(folder, "a")
    record(folder, "a", "a", error="lost", error_class="sandbox")
    assert [(item.attempt, item.error) for item in RunFolder.open(folder).errors()] == [(1, "lost")]
    assert not any("resume" in caveat for caveat in report(folder, []).caveats)
    record(folder, "a")
    assert [item.attempt for item in recorded(folder)] == [0, 1]
    names = ["a.0.json", "a.1.error.json", "a.1.error1.json", "a.1.json"]
    assert sorted(path.name for path in (folder / "attempts").iterdir()) == names


def test_writers_of_several_processes_lose_no_episode(folder: Path) -> None:
    with ProcessPoolExecutor(3, get_context("spawn")) as pool:
        list(pool.map(record_many, [folder] * 3, "xyz"))
    episodes = recorded(folder)
    assert [item.attempt for item in episodes] == list(range(120))
    assert Counter(item.model for item in episodes) == dict.fromkeys("xyz", 40)


def record_many(folder: Path, model: str) -> None:
    """Records 40 episodes, by threads that share a folder object and threads with their own."""
    run = RunFolder.recorder(folder)
    episode = Trajectory(task_id="a", model=model)
    with ThreadPoolExecutor(4) as pool:
        for number in range(40):
            pool.submit((run if number % 2 else RunFolder.recorder(folder)).record, episode)


def test_recording_never_lists_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(folder, *"a" * 21)
    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, raising(AssertionError("listed")))
    record(folder, *"ab")
    monkeypatch.undo()
    assert [(item.task_id, item.attempt) for item in recorded(folder)[-2:]] == [("a", 21), ("b", 0)]


def test_a_full_disk_leaves_whole_files_and_raises(folder: Path) -> None:
    record(folder, "small")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.raises(InfrastructureError):
            record(folder, "large", patch="x" * 4000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert [path.name for path in (folder / "attempts").iterdir()] == ["small.0.json"]


CALL = {"id": "a", "function": {"name": "shell", "arguments": "{}"}}
GOOD = {"role": "assistant", "content": "", "tool_calls": [CALL]}


def test_a_file_of_another_kind_is_named(folder: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        RunFolder.open(folder)
    record(folder, "a")
    path = folder / "attempts/a.0.json"
    calls: list[Any] = [5, [{}], [CALL, CALL["function"]], [CALL | {"function": {"name": "shell"}}]]
    for message in ({}, *(GOOD | {"tool_calls": call} for call in calls)):
        path.write_text(json.dumps({"task_id": "x", "messages": [GOOD, message]}))
        with pytest.raises(InvalidArgumentError, match=r"a\.0\.json.*messages\[1\]"):
            recorded(folder)
    path.write_text(json.dumps({"task_id": "x", "tools": [{"function": {}}]}))
    with pytest.raises(InvalidArgumentError, match=r"a\.0\.json.*tools\[0\]"):
        recorded(folder)
    for data in (b"\x1f\x8b\xff\n", b"[]\n", b'{"turns": [{"token_ids": []}]}\n', b'{"task_id'):
        path.write_bytes(data)
        with pytest.raises(InvalidArgumentError, match=r"a\.0\.json"):
            recorded(folder)
