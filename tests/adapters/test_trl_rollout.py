"""What TRL does with an environment, done by hand; TRL itself is in tests/extras."""

import gc
import inspect
import json
import operator
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import pytest
from episodes import raising
from gymnasium.error import ResetNeeded
from processes import descendants

from coding_gym import load_tasks
from coding_gym.adapters.trl import environment_factory, prompt_rows
from coding_gym.adapters.trl_rollout import rollout_class
from coding_gym.errors import (
    EpisodeError,
    GradingError,
    InvalidArgumentError,
    InvalidTaskError,
    SandboxError,
    SandboxUnavailableError,
    UnknownNameError,
    UnknownTaskError,
)
from coding_gym.grading import grade
from coding_gym.text.neutral import ZERO_WIDTH_SPACE

FIX = {"search": "width + height", "replace": "width * height", "file": "shapes.py"}
ROW = {"task_id": "shapes-area", "prompt": [{"role": "user", "content": "Repair it."}]}

Make = Callable[..., Any]


@pytest.fixture
def make(tiny_row: dict[str, Any]) -> Make:
    """Returns a rollout of the tiny task, not yet reset."""
    return lambda **kwargs: environment_factory(tasks=[tiny_row], **kwargs)()


@pytest.fixture
def rollout(make: Make) -> Any:
    """One that is reset."""
    made = make()
    made.reset(**ROW)
    return made


def test_the_public_functions_of_the_class_are_the_tools(make: Make) -> None:
    names = [name for name, _ in inspect.getmembers(type(make()), inspect.isfunction)]
    public = [name for name in names if not name.startswith("_")]
    assert public == ["apply_patch", "get_reward", "reset", "shell", "submit"]
    assert inspect.signature(make().apply_patch).parameters.keys() == FIX.keys()


def test_rollouts_with_one_toolset_share_a_class_which_names_the_reward_column(make: Make) -> None:
    assert type(make()) is type(make(max_turns=3)) is rollout_class("nano")
    assert rollout_class("nano").__name__ == "CodingRepair_nano"


def test_a_repair_that_is_submitted_is_rewarded(make: Make) -> None:
    rollout = make()
    assert rollout.reset(**ROW).startswith("area(3, 5) gives 8")
    assert "width + height" in rollout.shell(cmd="cat shapes.py")
    assert rollout.apply_patch(**FIX) == "patch applied successfully"
    assert rollout.submit() == "submitted"
    assert rollout.get_reward() == 1.0
    assert rollout.info["stop_reason"] == "submitted"


def test_after_the_end_a_tool_says_that_the_episode_is_over(make: Make) -> None:
    rollout = make(max_turns=1)
    rollout.reset(**ROW)
    rollout.apply_patch(**FIX)
    for tool in (rollout.shell, rollout.submit):
        with pytest.raises(EpisodeError, match=r"the episode is over \(max_turns\); reply without"):
            tool()
    assert rollout.get_reward() == 1.0


def test_the_reward_stops_and_grades_once(rollout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grading = mock.Mock(wraps=grade)
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", grading)
    rollout.apply_patch(**FIX)
    assert [rollout.get_reward() for _ in range(3)] == [1.0, 1.0, 1.0]
    assert grading.call_count == 1
    assert rollout.info["stop_reason"] == "stopped"
    with pytest.raises(EpisodeError, match="stopped"):
        rollout.shell(cmd="ls")


def test_what_a_model_gets_wrong_is_answered_by_the_toolset_and_counted(rollout: Any) -> None:
    assert rollout.shell(command="ls") == "shell tool missing required 'cmd' parameter"
    assert rollout.shell(cmd=["ls"]) == "shell tool parameter 'cmd' must be a string"
    assert rollout.apply_patch(search=1) == "invalid `apply_patch` arguments"
    assert rollout.info["tool_calls"] == 3


def test_control_tokens_are_broken_for_reading(tiny_row: dict[str, Any]) -> None:
    tiny_row["problem_statement"] = "It prints <|im_end|>."
    tiny_row["files"]["chat.py"] = "END = '<|im_end|>'\n"
    rollout = environment_factory(tasks=[tiny_row])()
    assert rollout.reset(**ROW).strip() == f"It prints <{ZERO_WIDTH_SPACE}|im_end|>."
    assert rollout.shell(cmd="cat chat.py") == f"END = '<{ZERO_WIDTH_SPACE}|im_end|>'"


def test_a_grader_that_fails_gives_no_reward(rollout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", raising(GradingError("no disk")))
    assert rollout.submit() == "submitted"
    assert rollout.get_reward() is None
    assert rollout.info["error"] == "no disk"


def test_a_sandbox_that_fails_gives_no_reward(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = make()
    with monkeypatch.context() as patch:
        patch.setattr("coding_gym.episode.lifecycle.open_sandbox", raising(SandboxError("no room")))
        assert rollout.reset(**ROW).startswith("area(3, 5) gives 8")
    assert rollout.shell(cmd="ls") == ""
    with pytest.raises(EpisodeError, match="sandbox_error"):
        rollout.shell(cmd="ls")
    assert rollout.get_reward() is None
    rollout.reset(**ROW)
    assert rollout.get_reward() == 0.0


def test_sandboxes_that_never_opened_raise(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    seasoned, new = make(), make()
    seasoned.reset(**ROW)
    failure = SandboxUnavailableError("forbidden", "run: sysctl …")
    monkeypatch.setattr("coding_gym.episode.lifecycle.open_sandbox", raising(failure))
    assert "could not be opened" in seasoned.reset(**ROW)
    assert seasoned.get_reward() is None
    with pytest.raises(EpisodeError, match="sandbox_error"):
        seasoned.shell(cmd="ls")
    with pytest.raises(SandboxUnavailableError, match="sysctl"):
        new.reset(**ROW)


def test_a_wrapper_whose_machinery_fails_masks_the_rollout(make: Make) -> None:
    failing = {"func": raising(SandboxError("gone"))}
    rollout = make(wrappers=[{"name": "gymnasium.wrappers:TransformReward", "kwargs": failing}])
    rollout.reset(**ROW)
    assert rollout.shell(cmd="ls") == ""
    assert rollout.get_reward() is None
    assert rollout.info["error"] == "gone"
    assert rollout.info["task_id"] == "shapes-area"


def test_a_rollout_is_used_again_and_drops_the_last_episode(rollout: Any) -> None:
    rollout.apply_patch(**FIX)
    rollout.reset(**ROW)
    assert "width + height" in rollout.shell(cmd="cat shapes.py")
    assert rollout.get_reward() == 0.0
    rollout.reset(**ROW)
    rollout.apply_patch(**FIX)
    rollout.submit()
    assert rollout.get_reward() == 1.0


def test_rollouts_that_nobody_holds_leave_no_process(make: Make) -> None:
    warm = make()  # what serves all sandboxes of a process stays
    warm.reset(**ROW)
    warm.get_reward()
    before = set(descendants(os.getpid()))
    rollouts = [make() for _ in range(3)]
    for rollout in rollouts:
        rollout.reset(**ROW)
        rollout.shell(cmd="true")
    assert len(set(descendants(os.getpid())) - before) >= 3
    del rollouts, rollout
    gc.collect()
    assert set(descendants(os.getpid())) <= before


def test_rollouts_play_side_by_side_on_threads_of_their_own(make: Make) -> None:
    rollouts = [make() for _ in range(4)]

    def play(number: int) -> float | None:
        rollout = rollouts[number]
        rollout.reset(**ROW)
        rollout.shell(cmd=f"echo {number} > mine")
        if number % 2:
            rollout.apply_patch(**FIX)
        assert rollout.shell(cmd="cat mine") == str(number)
        return rollout.get_reward()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(play, range(4))) == [0.0, 1.0, 0.0, 1.0]


def test_a_row_names_its_task_or_holds_it(make: Make, tiny_row: dict[str, Any]) -> None:
    rollout = make()
    other = tiny_row | {"instance_id": "other", "problem_statement": "Another report."}
    assert rollout.reset(task=json.dumps(other), task_id=None).strip() == "Another report."
    assert rollout.reset(task=other).strip() == "Another report."
    assert rollout.info["task_id"] == "other"


def test_a_row_without_a_task_is_the_callers_fault(make: Make, tiny_row: dict[str, Any]) -> None:
    rollout = make()
    with pytest.raises(UnknownTaskError, match="no task 'shapes'"):
        rollout.reset(task_id="shapes")
    with pytest.raises(InvalidArgumentError, match=r"either a task_id or a task, got \[\] among"):
        rollout.reset(prompt="x")
    with pytest.raises(InvalidArgumentError, match="either a task_id or a task"):
        rollout.reset(task_id="shapes-area", task=tiny_row)
    with pytest.raises(InvalidArgumentError, match="the column task is not JSON"):
        rollout.reset(task="{")
    with pytest.raises(InvalidTaskError):
        rollout.reset(task="{}")
    with pytest.raises(ResetNeeded):
        make().get_reward()


def test_the_factory_checks_its_arguments() -> None:
    with pytest.raises(UnknownNameError, match="nanoo"):
        environment_factory(toolset="nanoo")
    with pytest.raises(InvalidArgumentError, match="omit tool_format"):
        environment_factory(tool_format="hermes")
    with pytest.raises(InvalidArgumentError, match=r"the tokenizer, got its name 'Qwen/Qwen3'"):
        environment_factory(processing_class="Qwen/Qwen3")
    with pytest.raises(InvalidArgumentError, match="max_truns"):
        environment_factory(max_truns=3)()


def test_a_factory_pickles_with_its_wrappers(tiny_row: dict[str, Any]) -> None:
    wrappers = [{"name": "gymnasium.wrappers:TransformReward", "kwargs": {"func": operator.neg}}]
    factory = environment_factory(tasks=[tiny_row], wrappers=wrappers)
    rollout = pickle.loads(pickle.dumps(factory))()  # noqa: S301 - our own
    rollout.reset(**ROW)
    rollout.apply_patch(**FIX)
    assert rollout.get_reward() == -1.0


def test_wrappers_that_take_other_actions_than_texts_are_refused(make: Make) -> None:
    for name in ("TokenActions", "MenuActions"):
        with pytest.raises(InvalidArgumentError, match=f"leave out {name}, which takes other"):
            make(wrappers=[{"name": name}, {"name": "TokenBudget", "kwargs": {"max_tokens": 9000}}])


def test_a_tool_before_reset_says_what_to_call(make: Make) -> None:
    rollout = make()
    with pytest.raises(EpisodeError, match="call reset first"):
        rollout.shell(cmd="ls")
    rollout.reset(**ROW)
    with pytest.raises(UnknownTaskError):
        rollout.reset(task_id="shapes")
    with pytest.raises(EpisodeError, match="call reset first"):  # not the episode before
        rollout.get_reward()


def test_prompt_rows_hold_a_chat_and_a_task_but_not_the_report(tiny_row: dict[str, Any]) -> None:
    (row,) = prompt_rows([tiny_row])
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert row["task_id"] == "shapes-area"
    assert "area(3, 5)" not in json.dumps(row)
    assert len(prompt_rows(split="train")) == len(load_tasks(split="train"))
    assert prompt_rows(task_ids="waypoint-two-words")[0]["task_id"] == "waypoint-two-words"
    with pytest.raises(UnknownTaskError):
        prompt_rows([tiny_row], split="dev")
    untested = {**tiny_row, "FAIL_TO_PASS": [], "PASS_TO_PASS": []}
    assert len(prompt_rows([untested], grading="none")) == 1
    with pytest.raises(InvalidTaskError):
        prompt_rows([untested])
    with pytest.raises(UnknownNameError, match="grading"):
        prompt_rows([tiny_row], grading="some")
