"""Rollouts of the TRL adapter, without TRL; tests/extras has tests with the trainer."""

import inspect
import json
import operator
import pickle
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from episodes import raising
from sandbox_fixtures import left_by_dropping

from coding_gym import load_tasks
from coding_gym.adapters.trl import environment_factory, prompt_rows
from coding_gym.errors import (
    EpisodeError,
    InvalidArgumentError,
    InvalidTaskError,
    SandboxError,
    SandboxUnavailableError,
    UnknownNameError,
    UnknownTaskError,
)
from coding_gym.grading import grade

FIX = {"search": "width + height", "replace": "width * height", "file": "shapes.py"}
ROW = {"task_id": "shapes-area", "prompt": [{"role": "user", "content": "Repair it."}]}

Make = Callable[..., Any]


@pytest.fixture
def make(tiny_row: dict[str, Any]) -> Make:
    """Returns a rollout of the tiny task, not yet reset."""
    return lambda **kwargs: environment_factory(tasks=[tiny_row], **kwargs)()


def test_the_public_functions_of_the_class_are_the_tools(make: Make) -> None:
    names = [name for name, _ in inspect.getmembers(type(make()), inspect.isfunction)]
    public = [name for name in names if not name.startswith("_")]
    assert public == ["apply_patch", "get_reward", "reset", "shell", "submit"]
    assert inspect.signature(make().apply_patch).parameters.keys() == FIX.keys()
    assert type(make()) is type(make(max_turns=3))
    assert type(make()).__name__ == "CodingRepair_nano"  # TRL's reward column


def test_a_repair_that_is_submitted_is_rewarded(make: Make) -> None:
    rollout = make()
    assert rollout.reset(**ROW).startswith("area(3, 5) gives 8")
    assert "width + height" in rollout.shell(cmd="cat shapes.py")
    assert rollout.apply_patch(**FIX) == "patch applied successfully"
    assert rollout.submit() == "submitted"
    assert rollout.get_reward() == 1.0
    assert rollout.info["stop_reason"] == "submitted"


def test_get_reward_stops_and_grades_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = make()
    rollout.reset(**ROW)
    grading = mock.Mock(wraps=grade)
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", grading)
    rollout.apply_patch(**FIX)
    assert [rollout.get_reward() for _ in range(3)] == [1.0, 1.0, 1.0]
    assert grading.call_count == 1
    assert rollout.info["stop_reason"] == "stopped"
    with pytest.raises(EpisodeError, match="stopped"):
        rollout.shell(cmd="ls")


def test_a_sandbox_that_fails_gives_no_reward(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = make()
    with monkeypatch.context() as patch:
        patch.setattr("coding_gym.episode.config.open_sandbox", raising(SandboxError("no room")))
        assert rollout.reset(**ROW).startswith("area(3, 5) gives 8")
    assert rollout.shell(cmd="ls") == ""
    with pytest.raises(EpisodeError, match="sandbox_error"):
        rollout.shell(cmd="ls")
    assert rollout.get_reward() is None
    rollout.reset(**ROW)
    assert rollout.get_reward() == 0.0


def test_an_unavailable_sandbox_raises_only_before_the_first_episode(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout, unavailable = make(), raising(SandboxUnavailableError("no user namespaces"))
    with monkeypatch.context() as patch:
        patch.setattr("coding_gym.episode.config.open_sandbox", unavailable)
        with pytest.raises(SandboxUnavailableError):
            rollout.reset(**ROW)
    rollout.reset(**ROW)
    monkeypatch.setattr("coding_gym.episode.config.open_sandbox", unavailable)
    rollout.reset(**ROW)
    assert rollout.get_reward() is None


def test_a_dropped_rollout_leaves_no_process(make: Make) -> None:
    def start() -> Any:
        rollout = make()
        rollout.reset(**ROW)
        rollout.shell(cmd="true")
        return rollout

    start().get_reward()  # processes that all sandboxes share remain
    assert left_by_dropping(start) == set()


def test_a_factory_pickles_with_its_wrappers(tiny_row: dict[str, Any]) -> None:
    wrappers = [{"name": "gymnasium.wrappers:TransformReward", "kwargs": {"func": operator.neg}}]
    factory = environment_factory(tasks=[tiny_row], wrappers=wrappers)
    rollout = pickle.loads(pickle.dumps(factory))()  # noqa: S301 - trusted
    rollout.reset(**ROW)
    rollout.apply_patch(**FIX)
    assert rollout.get_reward() == -1.0


def test_rows_without_a_usable_task_are_refused(make: Make) -> None:
    rollout = make()
    for row, error in (
        ({"task_id": "shapes"}, UnknownTaskError),
        ({"task": "{}"}, InvalidTaskError),
    ):
        with pytest.raises(error):
            rollout.reset(**row)
    for call in (rollout.get_reward, rollout.submit):
        with pytest.raises(EpisodeError):
            call()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"toolset": "nanoo"}, UnknownNameError),
        ({"tool_format": "hermes"}, InvalidArgumentError),
        ({"max_truns": 3}, InvalidArgumentError),
        ({"max_turns": 0}, InvalidArgumentError),
        ({"sampler": "uniform"}, InvalidArgumentError),  # TRL's dataset selects the tasks
        ({"wrappers": [{"name": "TokenBudgett"}]}, InvalidArgumentError),
    ],
)
def test_the_factory_checks_its_arguments(arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        environment_factory(**arguments)


def test_prompt_rows_refuse_a_tool_format() -> None:
    with pytest.raises(InvalidArgumentError, match="tool_format"):
        prompt_rows(tool_format="hermes")


def test_prompt_rows_hold_a_task_but_not_the_report(tiny_row: dict[str, Any]) -> None:
    (row,) = prompt_rows([tiny_row])
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert row["task_id"] == "shapes-area"
    assert "area(3, 5)" not in json.dumps(row)
    (row,) = prompt_rows([tiny_row], sandbox={"shell": "persistent"})
    assert "goes on in the same shell" in row["prompt"][0]["content"]
    assert len(prompt_rows(split="train")) == len(load_tasks(split="train"))
    untested = {**tiny_row, "FAIL_TO_PASS": [], "PASS_TO_PASS": []}
    assert len(prompt_rows([untested], grading="none")) == 1
    for rows, arguments, error in (
        ([tiny_row], {"split": "dev"}, UnknownTaskError),
        ([untested], {}, InvalidTaskError),
    ):
        with pytest.raises(error):
            prompt_rows(rows, **arguments)
