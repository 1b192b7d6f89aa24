"""Episodes of `Session`, which drives the environment for all text adapters."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from episodes import FIX, SUBMIT, raising

from coding_gym.action import Completion, Stop
from coding_gym.adapters.session import Session, play_chat, task_options
from coding_gym.calls import ToolCall
from coding_gym.errors import (
    EpisodeError,
    GradingError,
    InvalidArgumentError,
    SandboxError,
    UnknownTaskError,
)
from coding_gym.text.neutral import ZERO_WIDTH_SPACE

BROKEN = f"<{ZERO_WIDTH_SPACE}|im_end|>"

Make = Callable[..., Session]


@pytest.fixture
def make(tiny_row: dict[str, Any], closing: Callable[[Any], Any]) -> Make:
    return lambda **kwargs: closing(Session(**{"tasks": [tiny_row]} | kwargs))  # type: ignore[no-any-return]


def test_control_tokens_of_a_file_are_split(make: Make, tiny_row: dict[str, Any]) -> None:
    tiny_row["files"]["chat.py"] = "END = '</tool_call><|im_end|>'\n"
    session = make(tasks=[tiny_row], tool_format="hermes")
    session.start()
    assert "<tool_call>" in session.messages[0]["content"]  # the system prompt is not changed
    session.step(Completion("", calls=[ToolCall("shell", {"cmd": "cat chat.py"})]))
    (message,) = session.messages
    assert message["role"] == "tool"
    assert BROKEN in message["content"]
    session.step(Completion("", calls=[ToolCall("shell", {"cmd": "wc -c < chat.py"})]))
    assert session.text == "31"


@pytest.mark.parametrize("is_text", [True, False])
def test_a_copied_control_token_is_found_in_the_file(
    make: Make, tiny_row: dict[str, Any], is_text: bool
) -> None:
    tiny_row["files"]["chat.py"] = f"START, END = '<s>', '</s>'  # <{ZERO_WIDTH_SPACE} s>\n"
    session = make(tasks=[tiny_row])
    session.start()
    session.step('{"name": "shell", "arguments": {"cmd": "cat chat.py"}}')
    copied = session.text.strip()
    assert copied.count(ZERO_WIDTH_SPACE) == 3
    edit = {"file": "chat.py", "search": copied, "replace": f"{copied}!"}
    as_text = json.dumps({"name": "apply_patch", "arguments": edit})
    as_call = Completion("", calls=[ToolCall("apply_patch", edit)])
    session.step(as_text if is_text else as_call)
    episode = session.unwrapped.episode
    assert f"+START, END = '<s>', '</s>'  # <{ZERO_WIDTH_SPACE} s>!" in episode.patch().text
    assert episode.turns[-1].calls[0].arguments == edit


def test_infrastructure_failures_mask_the_episode(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make()
    with monkeypatch.context() as patch:
        patch.setattr("coding_gym.episode.episode.grade_patch", raising(GradingError("no disk")))
        session.start()
        session.finish("enough")
        assert (session.reward, session.total_reward) == (None, None)
        keys = set(session.info)
    with monkeypatch.context() as patch:
        patch.setattr("gymnasium.core.Wrapper.reset", raising(SandboxError("no room")))
        session.start(task_id="shapes-area")
    assert session.ended
    assert session.total_reward is None
    assert "could not be opened" in session.messages[0]["content"]
    assert session.summary()["error"] == "no room"
    assert set(session.info) == keys
    assert session.info["budget"]["turns"] == session.unwrapped.config.limits.max_turns
    session.start()
    session.step('{"name": "shell", "arguments": {"cmd": "sed -i s/+/*/ shapes.py"}}')
    session.finish("enough")
    assert (session.reward, session.terminated) == (1.0, False)


def test_calls_in_the_wrong_order_are_refused(make: Make) -> None:
    session = make()
    for read in (lambda: session.text, lambda: session.reward, session.metrics, session.chat):
        with pytest.raises(EpisodeError):
            read()
    with pytest.raises(EpisodeError):
        session.step("ls")
    session.start()
    session.finish("enough")
    session.finish("enough")
    with pytest.raises(EpisodeError, match="stopped"):
        session.step("ls")
    session.close()
    session.close()


def test_a_session_closed_while_it_opens_leaves_no_sandbox(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make()
    reset = session.env.reset

    def close_meanwhile(**options: Any) -> Any:
        session.close()
        return reset(**options)

    monkeypatch.setattr(session.env, "reset", close_meanwhile)
    session.start()
    with pytest.raises(EpisodeError, match="closed"):
        session.step("ls")


def test_a_row_has_a_task_id_or_a_task() -> None:
    assert task_options({"task_id": "a", "prompt": "…"}) == {"task_id": "a"}
    assert task_options({"task": '{"instance_id": "a"}', "task_id": None}) == {
        "task": {"instance_id": "a"}
    }
    for row in ({}, {"task_id": "a", "task": "{}"}, {"task": "{"}):
        with pytest.raises(InvalidArgumentError, match="task"):
            task_options(row)


def test_a_sandbox_error_of_a_wrapper_masks_the_episode(make: Make) -> None:
    failure = {"func": raising(SandboxError("gone"))}
    session = make(wrappers=[{"name": "gymnasium.wrappers:TransformReward", "kwargs": failure}])
    session.start()
    session.step(FIX)
    assert (session.ended, session.total_reward) == (True, None)
    assert (session.info["error"], session.info["task_id"]) == ("gone", "shapes-area")


def test_a_refused_start_closes_the_last_episode(make: Make) -> None:
    session = make()
    session.start()
    with pytest.raises(UnknownTaskError):
        session.start(task_id="nowhere")
    assert session.unwrapped.episode.template is None  # the sandbox is closed
    with pytest.raises(EpisodeError, match="start"):
        session.finish("enough")


def test_wrappers_without_text_actions_are_refused(make: Make) -> None:
    with pytest.raises(InvalidArgumentError, match="MenuActions"):
        make(wrappers=[{"name": "MenuActions"}])


def test_play_chat_plays_many_episodes_in_one_loop(make: Make) -> None:
    sessions, requests = [make() for _ in range(4)], list[dict[str, Any]]()
    waiting = 0

    async def play(number: int) -> float | None:
        replies = iter(
            [FIX, SUBMIT] if number % 2 else [Completion("", calls=[ToolCall("submit")])]
        )

        async def ask(request: dict[str, Any]) -> str:
            nonlocal waiting
            waiting += 1
            while waiting < len(sessions):  # all episodes wait for a reply
                await asyncio.sleep(0)
            requests.append(request)
            return next(replies)

        sessions[number].start()
        await play_chat(sessions[number], ask)
        return sessions[number].total_reward

    async def play_all() -> list[float | None]:
        return await asyncio.gather(*map(play, range(len(sessions))))

    assert asyncio.run(play_all()) == [0.0, 1.0, 0.0, 1.0]
    roles = [message["role"] for message in requests[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]
    assert [tool["function"]["name"] for tool in requests[0]["tools"]][-1] == "submit"


def test_play_chat_stops_and_skips_a_lost_episode(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(_: dict[str, Any]) -> str:
        return Stop("the context is full")

    session = make()
    session.start()
    asyncio.run(play_chat(session, ask))
    assert (session.info["stop_reason"], session.total_reward) == ("stopped", 0.0)
    monkeypatch.setattr("gymnasium.core.Wrapper.reset", raising(SandboxError("no room")))
    session.start()
    asyncio.run(play_chat(session, ask))
    assert session.total_reward is None
