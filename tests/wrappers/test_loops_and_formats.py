"""`CollapseDetector`, `FormatErrorLimit`, and the turns that a task allows."""

import json
from typing import Any

import pytest
from episodes import Closing, Env, replies, shells

import coding_gym
from coding_gym.calls import ToolCall
from coding_gym.episode.usage import call_digest
from coding_gym.tools import NoCall, get_toolset
from coding_gym.wrappers import CollapseDetector, FormatErrorLimit, ToolCallBudget

BROKEN = "<tool_call>{</tool_call>"
MALFORMED = json.dumps([{"function": {"name": "shell", "arguments": '{"cmd": '}}])
UNKNOWN = '{"name": "sing", "arguments": {}}'


def warning(number: int, command: str) -> str:
    return (
        f"The last {number} commands you generated were identical: '{command}'. This suggests you "
        "may be stuck in a loop. Please try a different approach or command.\n"
    )


@pytest.mark.parametrize("before", [[], ["echo 1"], ["echo x", "echo x", "echo y", "echo x"]])
@pytest.mark.parametrize("in_one_reply", [True, False])
def test_the_same_call_warns_and_then_ends(before: list[str], in_one_reply: bool, env: Env) -> None:
    wrapped = CollapseDetector(env)
    wrapped.reset()
    commands = [*before, *["echo same"] * 4, "echo never"]
    said: list[str] = []
    for action in [shells(*commands)] if in_one_reply else map(shells, commands):
        _, reward, terminated, truncated, info = wrapped.step(action)
        said += replies(info)
        if truncated:
            break
    assert said[len(before) :] == ["same", "same", warning(3, "echo same") + "same", "same"]
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["stop_reason"], info["budget"]["repeats"]) == ("collapsed", 0)


def test_another_call_starts_the_count_again_and_words_do_not(env: Env) -> None:
    wrapped = CollapseDetector(env, repeats=2)
    assert wrapped.reset()[1]["budget"]["repeats"] == 3
    left = [
        wrapped.step(action)[4]["budget"]["repeats"]
        for action in (shells("true"), "Hm.", shells("true"), shells("false"), shells("true"))
    ]
    assert left == [2, 2, 1, 2, 2]


def test_ids_and_the_order_of_keys_make_no_difference() -> None:
    one = ToolCall("apply_patch", {"search": "a", "replace": "b", "file": "c"}, "call_0")
    other = ToolCall("apply_patch", {"file": "c", "replace": "b", "search": "a"}, "call_1")
    assert call_digest(one) == call_digest(other)
    others = [
        ToolCall("apply_patch", {"file": "c", "replace": "b", "search": "A"}),
        ToolCall("apply", one.arguments),
        ToolCall("apply_patch", one.arguments, error="broken"),
        ToolCall("shell", {"cmd": 1}),
        ToolCall("shell", {"cmd": "1"}),
        ToolCall("shell", {"cmd": ["1"]}),
    ]
    assert len({call_digest(each) for each in [one, *others]}) == 7


@pytest.mark.parametrize(
    ("toolset", "calls"),
    [
        ("nano", [("shell", {"cmd": "ls", "extra": i}) for i in range(4)]),
        (
            "editor",
            [
                ("bash", {"command": "ls"}),
                ("execute_bash", {"command": "ls", "timeout": 3}),
                ("bash", {"cmd": "ls"}),
            ],
        ),
        (
            "codex",
            [
                ("run_command", {"command": "ls"}),
                ("run_command", {"arguments": '{"command": "ls"}'}),
                ("run_command", {"command": "ls", "why": "again"}),
            ],
        ),
    ],
)
def test_arguments_that_a_tool_ignores_make_no_other_call(
    toolset: str, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    tools = get_toolset(toolset)
    assert len({call_digest(tools.canonical(ToolCall(*call))) for call in calls}) == 1


def test_arguments_that_a_tool_reads_make_another_call() -> None:
    for calls in [
        [("bash", {"cmd": "ls"}), ("bash", {"cmd": "pwd"})],
        [("shell", {"cmd": "ls"}), ("shell", {"cmd": "ls "})],
        [("bash", {}), ("bash", {"command": None})],
        [("sing", {"a": 1}), ("sing", {"a": 2})],
        [("submit", {}), ("execute_bash", {})],
    ]:
        for toolset in ["nano", "editor", "codex"]:
            tools = get_toolset(toolset)
            one, other = (call_digest(tools.canonical(ToolCall(*call))) for call in calls)
            assert one != other, (calls, toolset)


def test_malformed_and_unknown_calls_collapse_too(env: Env) -> None:
    for action in (MALFORMED, UNKNOWN):
        wrapped = CollapseDetector(env, repeats=2)
        wrapped.reset()
        assert not wrapped.step(action)[3]
        assert replies(wrapped.step(action)[4])[0].startswith("The last 2 commands you generated")
        assert wrapped.step(action)[4]["stop_reason"] == "collapsed"


def test_the_last_unreadable_reply_is_answered_with_the_warning(env: Env) -> None:
    wrapped = CollapseDetector(ToolCallBudget(env, max_tool_calls=4), repeats=2)
    wrapped.reset()
    first, second, third = (wrapped.step(BROKEN)[4] for _ in range(3))
    said = first["messages"][-1]["content"]
    assert not said.startswith("The last")
    assert second["messages"][-1]["content"] == warning(2, BROKEN) + said
    assert third["stop_reason"] == "collapsed"


def test_budget_warnings_stand_in_front(env: Env) -> None:
    wrapped = CollapseDetector(ToolCallBudget(env, max_tool_calls=3), repeats=2)
    wrapped.reset()
    wrapped.step(shells("true"))
    (reply,) = replies(wrapped.step(shells("true"))[4])
    assert reply == (
        "2 tools left. Prioritize essential changes.\n" + warning(2, "true") + "command succeeded"
    )


def test_the_count_goes_on_from_a_snapshot(env: Env, closing: Closing) -> None:
    wrapped = FormatErrorLimit(CollapseDetector(env, repeats=2))
    for actions, last, reason in (
        ((shells("true"), shells("true")), shells("true"), "collapsed"),
        ((BROKEN, MALFORMED), BROKEN, "format_errors"),
    ):
        wrapped.reset()
        for action in actions:
            wrapped.step(action)
        forked = closing(coding_gym.fork(wrapped))
        assert forked.step(last)[4]["stop_reason"] == reason


@pytest.mark.parametrize("unreadable", [BROKEN, MALFORMED])
def test_unreadable_replies_end_the_episode(unreadable: str, env: Env) -> None:
    wrapped = FormatErrorLimit(env)
    assert wrapped.reset()[1]["budget"]["format_errors"] == 3
    steps = [wrapped.step(unreadable) for _ in range(3)]
    assert [step[4]["budget"]["format_errors"] for step in steps] == [2, 1, 0]
    assert [step[3] for step in steps] == [False, False, True]
    assert steps[-1][4]["stop_reason"] == "format_errors"
    assert steps[-1][4]["text"]


@pytest.mark.parametrize("readable", [shells("true"), shells("false"), UNKNOWN])
def test_a_readable_call_starts_the_count_again(readable: str, env: Env) -> None:
    wrapped = FormatErrorLimit(env, max_errors=2)
    wrapped.reset()
    for action in (BROKEN, readable, BROKEN):
        assert not wrapped.step(action)[3]
    assert wrapped.step(BROKEN)[3]


def test_one_good_call_makes_a_reply_readable(env: Env) -> None:
    wrapped = FormatErrorLimit(env, max_errors=1)
    wrapped.reset()
    good, bad = {"name": "shell", "arguments": '{"cmd": "true"}'}, {"name": "shell"}
    both = json.dumps([{"function": good}, {"function": {**bad, "arguments": '{"cmd": '}}])
    assert not wrapped.step(both)[3]
    assert wrapped.step(MALFORMED)[3]


def test_words_may_be_an_error(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = FormatErrorLimit(env, max_errors=2)
    wrapped.reset()
    for _ in range(3):  # nano nudges
        assert not wrapped.step("Hm.")[3]
    strict = NoCall("Call a tool.", ends=False, costs_call=False, is_format_error=True)
    monkeypatch.setitem(vars(get_toolset("nano")), "on_no_call", lambda _: strict)
    assert not wrapped.step("Hm.")[3]
    assert wrapped.step("Hm.")[4]["stop_reason"] == "format_errors"
