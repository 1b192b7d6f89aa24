"""Actions with calls that a server or a trainer has parsed."""

from collections.abc import Callable
from typing import Any

import pytest
from episodes import shell

from coding_gym.action import Completion
from coding_gym.calls import ToolCall
from coding_gym.episode import Episode, Limits
from coding_gym.errors import InvalidArgumentError
from coding_gym.vector import CodingRepairVectorEnv

Make = Callable[..., Episode]

LOOK = ToolCall("shell", {"cmd": "echo looked"}, "call_a")
FIX = ToolCall("shell", {"cmd": "sed -i s/+/*/ shapes.py"})
SUBMIT = ToolCall("submit")
CIRCULAR: dict[str, Any] = {}
CIRCULAR["cmd"] = CIRCULAR


def carrying(*calls: ToolCall, text: str = "", **arguments: Any) -> Completion:
    return Completion(text, calls=calls, **arguments)


def nested_call(depth: int) -> ToolCall:
    arguments: dict[str, Any] = {}
    for _ in range(depth):
        arguments = {"a": arguments}
    return ToolCall("shell", arguments)


@pytest.mark.parametrize(
    "call",
    [
        shell("ls"),
        ToolCall("shell", {"cmd": b"ls"}),
        ToolCall(3, {}),  # type: ignore[arg-type]
        ("shell", {}),
        ToolCall("shell", CIRCULAR),
        ToolCall("shell", {"cmd": "ls", 1: 2}),  # type: ignore[dict-item]
    ],
    ids=range(6),
)
def test_only_tool_calls_with_json_arguments_are_carried(call: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"calls|arguments"):
        Completion("", calls=[call])


def test_carried_calls_run_and_the_text_is_not_parsed(episode: Episode) -> None:
    text = shell("touch parsed")
    episode.step(carrying(LOOK, text=text, token_ids=[5, 6]))
    assert episode.turns[0].observation == "looked"
    assert episode.messages[2]["content"] == text
    assert [call["id"] for call in episode.messages[2]["tool_calls"]] == ["call_a"]
    assert episode.messages[3]["tool_call_id"] == "call_a"
    assert not episode.patch().text


def test_empty_carried_calls_are_a_reply_without_a_call(episode: Episode) -> None:
    episode.step(Completion(shell("touch parsed"), calls=()))
    assert episode.turns[0].calls == ()
    assert episode.messages[-1]["role"] == "user"
    assert not episode.patch().text


def test_unknown_names_and_wrong_arguments_have_error_results(episode: Episode) -> None:
    unreadable = ToolCall("shell", {}, error="not closed")
    mistyped = ToolCall("shell", {"command": 3})
    episode.step(carrying(ToolCall("browse"), mistyped, unreadable))
    assert [result.ok for result in episode.turns[0].results] == [False] * 3
    assert not episode.ended
    assert len({call.call_id for call in episode.turns[0].calls}) == 3


def test_carried_calls_have_the_limits_of_parsed_calls(episode: Episode) -> None:
    surrogate = ToolCall("shell", {"cmd": "echo \ud800"})
    nameless = ToolCall("", error="no name")
    infinite = ToolCall("shell", {"cmd": "ls", "n": float("inf")})
    deep = [[nested_call(depth)] for depth in (400, 990, 100_000)]  # `json` writes 990, if at all
    for calls in ([LOOK] * 10_000, *deep, [surrogate], [LOOK, nameless], [infinite]):
        turn = episode.step(carrying(*calls))
        assert [message["role"] for message in turn.messages] == ["assistant", "user"]
        assert turn.calls == ()
    assert episode.usage.format_errors == 7


def test_arguments_have_at_most_64_levels(episode: Episode) -> None:
    turns = [episode.step(carrying(nested_call(depth))) for depth in (63, 64)]
    assert [len(turn.calls) for turn in turns] == [1, 0]


def test_tokens_of_carried_calls_are_counted(make: Make) -> None:
    episode = make(limits=Limits(max_tokens=100_000))
    episode.start()
    before = episode.usage.tokens
    episode.step(carrying(ToolCall("shell", {"cmd": "true # " + "word " * 500})))
    assert episode.usage.tokens - before > 500
    (turn,) = episode.trajectory().turns
    assert not turn.exact
    assert len(turn.token_ids) > 500


def test_vector_envs_pass_carried_calls_on(tiny_row: dict[str, Any]) -> None:
    envs = CodingRepairVectorEnv(2, tasks=[tiny_row])
    try:
        envs.reset()
        _, _, _, _, infos = envs.step([carrying(LOOK), carrying(FIX)])
        assert infos["text"][0] == "looked"
        assert envs.step([carrying(SUBMIT)] * 2)[1].tolist() == [0.0, 1.0]
    finally:
        envs.close()
