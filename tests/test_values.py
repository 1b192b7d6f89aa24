"""The frozen values survive JSON and pickling; wrong values and arguments are refused."""

import copy
import json
import pickle
from dataclasses import replace
from typing import Any

import pytest

from coding_gym.action import Completion, Stop
from coding_gym.arguments import check_arguments
from coding_gym.calls import ToolCall, ToolResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.trajectory import StopReason, Trajectory, Turn


def grade() -> Grade:
    return Grade(
        resolved=False,
        reason=GradeReason.TESTS_FAILED,
        fail_to_pass={"t::a": TestStatus.PASSED, "t::b": TestStatus.FAILED},
        pass_to_pass={"t::c": TestStatus.PASSED, "t::d": TestStatus.MISSING},
        levels={"value": 2},
        dropped_paths=("conftest.py",),
        detail="t::b failed",
        duration_s=0.5,
    )


def trajectory() -> Trajectory:
    turn = Turn(
        action="hi \udcff\n\u2028é",
        token_ids=(1, 2),
        exact=True,
        logprobs=(-0.1, float("-inf")),
        calls=(ToolCall("shell", {"cmd": "ls"}, "call_0"), ToolCall("x", {}, "call_1", "bad")),
        results=(ToolResult("out", ok=False, call_id="call_0"),),
        observation="\x00",
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


def test_older_and_newer_versions_are_read() -> None:
    data = json.loads(json.dumps(trajectory().to_json()))
    new = ("schema_version", "agent", "model", "seed", "attempt", "run_id", "tools", "usage")
    older = {name: value for name, value in data.items() if name not in (*new, "cost")}
    assert Trajectory.from_json(older).turns == trajectory().turns
    newer = {**data, "schema_version": 9, "later": 1}
    newer["turns"] = [{**turn, "later": 2} for turn in data["turns"]]
    newer["turns"][0]["calls"] = [{**call, "later": 3} for call in data["turns"][0]["calls"]]
    newer["grade"] = {**data["grade"], "later": 4}
    assert Trajectory.from_json(newer) == replace(trajectory(), schema_version=9)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("messages",), {}),
        (("stop_reason",), "tired"),
        (("turns", 0, "calls", 0, "arguments"), None),
    ],
)
def test_values_of_another_type_are_refused_with_their_path(path: Any, value: Any) -> None:
    data: Any = json.loads(json.dumps(trajectory().to_json()))
    *parents, last = path
    parent = data
    for key in parents:
        parent = parent[key]
    parent[last] = value
    location = "".join(f"\\[{p}\\]" if isinstance(p, int) else f"\\.{p}" for p in path)
    with pytest.raises(InvalidArgumentError, match=f"Trajectory{location}.* must be .*, got"):
        Trajectory.from_json(data)


def test_a_completion_refuses_missing_or_infinite_logprobs() -> None:
    with pytest.raises(ValueError, match="2"):
        Completion("hi", [5, 6], [-1.0])
    for value in (float("nan"), float("-inf")):
        with pytest.raises(InvalidArgumentError, match=str(value)):
            Completion("hi", [5], [value])
    assert (Completion("hi").exact, Completion("", []).exact) == (False, True)


@pytest.mark.parametrize(
    "action",
    [
        Completion("hi", [5, 6], [-1, -2]),
        Completion("so", [1], None, [ToolCall("shell", {"cmd": "ls"})], 7, "Hm.", True),
        Stop("out of budget"),
    ],
)
def test_actions_keep_their_parts_through_pickling_and_copying(action: str) -> None:
    for copied in (pickle.loads(pickle.dumps(action)), copy.deepcopy(action)):  # noqa: S301
        assert (type(copied), copied) == (type(action), action)
        for name in getattr(action, "__slots__", ()):
            assert getattr(copied, name) == getattr(action, name), name


@pytest.mark.parametrize(("argument", "message"), [("sizes", "'size'"), ("q", "size, depth")])
def test_an_unknown_argument_has_a_suggestion(argument: str, message: str) -> None:
    check_arguments("X", ["size"], ["size", "depth"])
    with pytest.raises(InvalidArgumentError, match=message):
        check_arguments("X", [argument], ["size", "depth"])


def test_only_ends_by_the_policy_are_terminations() -> None:
    assert {r for r in StopReason if r.terminated} == {
        StopReason.SUBMITTED,
        StopReason.NO_TOOL_CALL,
    }
    assert not any(r.terminated for r in StopReason if r.is_infrastructure_failure)
