"""The frozen values survive JSON and pickling."""

import json
import pickle

import pytest

from coding_gym.action import Completion, Stop
from coding_gym.calls import ExecResult, ToolCall, ToolResult
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.trajectory import StopReason, Trajectory, Turn


def grade() -> Grade:
    return Grade(
        resolved=False,
        reason=GradeReason.TESTS_FAILED,
        fail_to_pass={"t::a": TestStatus.PASSED, "t::b": TestStatus.FAILED},
        pass_to_pass={"t::c": TestStatus.PASSED, "t::d": TestStatus.MISSING},
        num_canaries=2,
        dropped_paths=("conftest.py",),
        detail="t::b failed",
        duration_s=0.5,
    )


def trajectory() -> Trajectory:
    turn = Turn(
        action="hi \udcff",
        token_ids=(1, 2),
        exact=True,
        logprobs=(-0.1, -0.2),
        calls=(ToolCall("shell", {"cmd": "ls"}, "call_0"), ToolCall("x", {}, "call_1", "bad")),
        results=(ToolResult("out", ok=False, call_id="call_0"),),
        observation="out",
        reward=1.0,
        reward_parts={"resolved": 1.0},
        duration_s=0.1,
    )
    return Trajectory(
        task_id="t",
        messages=({"role": "user", "content": "x"},),
        turns=(turn, Turn(action="bye")),
        stop_reason=StopReason.SUBMITTED,
        patch="diff",
        grade=grade(),
        toolset="nano",
        tokenizer="coding_gym_16k",
    )


def test_a_trajectory_survives_json() -> None:
    original = trajectory()
    again = Trajectory.from_json(json.loads(json.dumps(original.to_json())))
    assert again == original
    assert again.total_reward == 1.0
    assert not again.resolved


def test_an_unfinished_trajectory_survives_json() -> None:
    original = Trajectory(task_id="t")
    assert Trajectory.from_json(json.loads(json.dumps(original.to_json()))) == original


def test_the_pass_fraction_counts_expected_tests_and_is_zero_when_tampered_with() -> None:
    assert grade().pass_fraction == 0.5
    tampered = Grade(
        resolved=False,
        reason=GradeReason.TAMPERED,
        fail_to_pass={"a": TestStatus.PASSED},
    )
    assert tampered.pass_fraction == 0.0


def test_a_completion_is_text_that_keeps_its_tokens_through_pickling() -> None:
    completion = pickle.loads(pickle.dumps(Completion("hi", [5, 6], [-1, -2])))  # noqa: S301
    assert completion == "hi"
    assert completion.token_ids == (5, 6)
    assert completion.logprobs == (-1.0, -2.0)


def test_a_completion_refuses_log_probabilities_of_another_length() -> None:
    with pytest.raises(ValueError, match=r"one entry per token id \(2\), got 1"):
        Completion("hi", [5, 6], [-1.0])


def test_a_completion_refuses_text_that_no_budget_would_be_charged_for() -> None:
    with pytest.raises(ValueError, match="must be the ids of the text, got none for 2 characters"):
        Completion("hi", [])
    assert Completion("", []).token_ids == ()


def test_a_stop_is_text_that_says_why() -> None:
    assert isinstance(pickle.loads(pickle.dumps(Stop("out of budget"))), Stop)  # noqa: S301
    assert Stop("out of budget") == "out of budget"


def test_only_a_policys_own_ends_are_terminations() -> None:
    assert {r for r in StopReason if r.terminated} == {
        StopReason.SUBMITTED,
        StopReason.NO_TOOL_CALL,
    }
    assert not any(r.terminated for r in StopReason if r.is_machinery)


def test_a_command_that_timed_out_is_not_ok() -> None:
    assert ExecResult(0, "").ok
    assert not ExecResult(1, "").ok
    assert not ExecResult(0, "", timed_out=True).ok
