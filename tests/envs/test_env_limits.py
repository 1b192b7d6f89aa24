"""The argument ``limits``: warnings, stop reasons, and remaining amounts in the info."""

import json
from typing import Any

import pytest
from episodes import MakeEnv, replies, shells

from coding_gym import Completion
from coding_gym.envs import CodingRepairEnv
from coding_gym.tools import get_toolset

BROKEN = "<tool_call>{</tool_call>"
MALFORMED = json.dumps([{"function": {"name": "shell", "arguments": '{"cmd": '}}])
UNKNOWN = '{"name": "sing", "arguments": {}}'
LAST = "Last tool call! Make it count.\n"


@pytest.fixture
def limited(make_env: MakeEnv) -> MakeEnv:
    """Returns a function that makes an env of the tiny task with limits, and resets it."""

    def make(**limits: Any) -> CodingRepairEnv:
        env = make_env(limits=limits)
        env.reset()
        return env

    return make


def warning(num_calls: int) -> str:
    return f"{num_calls} tools left. Prioritize essential changes.\n"


def repeat_warning(number: int, command: str) -> str:
    return (
        f"The last {number} commands you generated were identical: '{command}'. This suggests you "
        "may be stuck in a loop. Please try a different approach or command.\n"
    )


@pytest.mark.parametrize("in_one_reply", [True, False])
def test_the_last_calls_have_warnings(limited: MakeEnv, in_one_reply: bool) -> None:
    env = limited(max_tool_calls=6, warn_tool_calls=True)
    commands = [f"echo {n}" for n in range(6)]
    results: list[str] = []
    truncated = False
    for action in [shells(*commands)] if in_one_reply else [shells(c) for c in commands]:
        assert not truncated
        _, _, _, truncated, info = env.step(action)
        results += replies(info)
    assert results == ["0", "1", warning(4) + "2", warning(3) + "3", warning(2) + "4", LAST + "5"]
    assert truncated
    assert info["stop_reason"] == "max_tool_calls"
    assert info["budget"]["tool_calls"] == 0
    trajectory = env.episode.trajectory()
    recorded = [result.content for turn in trajectory.turns for result in turn.results]
    assert recorded == results == [m["content"] for m in trajectory.messages if m["role"] == "tool"]


@pytest.mark.parametrize("in_one_reply", [True, False])
def test_repeated_calls_warn_and_then_end_the_episode(in_one_reply: bool, limited: MakeEnv) -> None:
    env = limited(max_repeats=3)
    before = ["echo x", "echo x", "echo y", "echo x"]
    commands = [*before, *["echo same"] * 4, "echo never"]
    results: list[str] = []
    for action in [shells(*commands)] if in_one_reply else map(shells, commands):
        _, reward, terminated, truncated, info = env.step(action)
        results += replies(info)
        if truncated:
            break
    last = repeat_warning(3, "echo same") + "same"
    assert results[len(before) :] == ["same", "same", last, "same"]
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["stop_reason"], info["budget"]["repeats"]) == ("collapsed", 0)


def test_only_another_call_resets_the_count_of_repeats(limited: MakeEnv) -> None:
    env = limited(max_repeats=2)
    actions = (shells("true"), "Hm.", shells("true"), shells("false"), shells("true"))
    assert [env.step(action)[4]["budget"]["repeats"] for action in actions] == [2, 2, 1, 2, 2]


def test_repeats_ignore_the_order_of_arguments_and_ids(limited: MakeEnv) -> None:
    env = limited(max_repeats=3)
    for call_id, arguments in (("a", {"cmd": "true", "x": 1}), ("b", {"x": 1, "cmd": "true"})):
        function = {"name": "shell", "arguments": json.dumps(arguments)}
        info = env.step(json.dumps([{"id": call_id, "function": function}]))[4]
    assert info["budget"]["repeats"] == 2


@pytest.mark.parametrize("action", [MALFORMED, UNKNOWN, BROKEN])
def test_malformed_unknown_and_unreadable_calls_collapse_too(action: str, limited: MakeEnv) -> None:
    env = limited(max_repeats=2)
    steps = [env.step(action) for _ in range(3)]
    assert [step[3] for step in steps] == [False, False, True]
    assert steps[1][4]["messages"][-1]["content"].startswith("The last 2 commands you generated")
    assert steps[2][4]["stop_reason"] == "collapsed"


@pytest.mark.parametrize("unreadable", [BROKEN, MALFORMED])
def test_unreadable_replies_end_the_episode(unreadable: str, limited: MakeEnv) -> None:
    env = limited(max_format_errors=3)
    steps = [env.step(unreadable) for _ in range(3)]
    assert [step[4]["budget"]["format_errors"] for step in steps] == [2, 1, 0]
    assert [step[3] for step in steps] == [False, False, True]
    assert steps[-1][4]["stop_reason"] == "format_errors"
    assert steps[-1][4]["text"]


GOOD_AND_BAD = json.dumps(
    [
        {"function": {"name": "shell", "arguments": '{"cmd": "true"}'}},
        {"function": {"name": "shell", "arguments": '{"cmd": '}},
    ]
)


@pytest.mark.parametrize(
    "readable", [shells("true"), shells("false"), UNKNOWN, GOOD_AND_BAD, "Hm."]
)
def test_a_readable_reply_resets_the_count_of_format_errors(
    readable: str, limited: MakeEnv
) -> None:
    env = limited(max_format_errors=2)
    for action in (BROKEN, readable, BROKEN):
        assert not env.step(action)[3]
    assert env.step(BROKEN)[3]


def test_a_reply_without_a_call_can_be_a_format_error(
    limited: MakeEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = limited(max_format_errors=2)
    for _ in range(3):  # nano replies with a reminder
        assert not env.step("Hm.")[3]
    monkeypatch.setitem(vars(get_toolset("nano")), "no_call_ends", False)
    assert not env.step("Hm.")[3]
    assert env.step("Hm.")[4]["stop_reason"] == "format_errors"


def test_a_command_is_killed_when_the_time_is_up(limited: MakeEnv) -> None:
    env = limited(max_seconds=1.5)
    _, _, terminated, truncated, info = env.step(shells("sleep 100", "echo never"))
    assert (terminated, truncated, info["stop_reason"]) == (False, True, "max_time")
    assert "exit code 124" in info["text"]
    assert "never" not in info["text"]
    assert info["budget"]["seconds"] == 0
    assert info["grade"].reason == "empty_patch"
    assert not info["mask_sample"]


def test_only_commands_count_against_the_time_limit(limited: MakeEnv) -> None:
    env = limited(max_seconds=500)
    assert env.step("I wonder.")[4]["budget"]["seconds"] == 500
    env.step(shells("true", "sleep 0.05"))
    seconds_left = env.episode.usage.seconds_left(env.episode.bounds)
    duration_s = sum(result.duration_s for result in env.episode.turns[-1].results)
    assert duration_s > 0.05
    assert seconds_left is not None
    assert 0 <= 500 - duration_s - seconds_left < 0.001


def test_every_reply_is_charged_with_its_prompt(limited: MakeEnv) -> None:
    env = limited(max_cost=1.0, input_price=2.0, output_price=8.0)
    expected = 1.0
    for num_tokens in (5, 700):
        prompt = env.episode.usage.tokens
        assert prompt > 300
        info = env.step(Completion(shells("echo one"), range(num_tokens)))[4]
        expected -= (prompt * 2.0 + num_tokens * 8.0) / 1e6
        assert info["budget"]["cost"] == pytest.approx(expected, abs=1e-12)
        assert info["budget"]["tokens"] is None


def test_the_episode_ends_at_the_cost_limit(limited: MakeEnv) -> None:
    env = limited(max_cost=2.0, output_price=1e6)
    assert not env.step(Completion("Hm.", [1]))[3]
    _, _, _, truncated, info = env.step(Completion(shells("echo 1", "echo 2"), [1]))
    assert (truncated, info["stop_reason"], info["text"]) == (True, "max_cost", "1")
    assert info["budget"]["cost"] == 0.0
