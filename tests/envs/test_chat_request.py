"""Requests for chat models: messages and tools."""

import json

import pytest
from episodes import shell

from coding_gym import Completion, chat_request
from coding_gym.calls import ToolCall
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import EpisodeError, InvalidArgumentError, UnknownNameError


def test_a_request_has_all_messages_and_the_tools(env: CodingRepairEnv) -> None:
    with pytest.raises(EpisodeError):
        chat_request(env)
    _, info = env.reset()
    messages = list(info["messages"])
    *_, info = env.step(shell("ls"))
    reply, result = info["messages"]
    messages += [{**reply, "content": None}, result]
    request = chat_request(env)
    assert request == {"messages": messages, "tools": list(env.toolset.schemas)}
    request["messages"].clear()
    assert chat_request(env)["messages"] == messages
    assistant, answer = chat_request(env, api="transformers")["conversation"][2:]
    assert assistant["tool_calls"][0]["id"] == answer["tool_call_id"] == "call00000"
    assert assistant["content"] == ""
    assert assistant["tool_calls"][0]["function"]["arguments"] == {"cmd": "ls"}
    with pytest.raises(UnknownNameError, match="'x'"):
        chat_request(env, api="x")
    with pytest.raises(InvalidArgumentError, match="hello"):
        chat_request("hello")


@pytest.mark.parametrize("arguments", ['{"cmd": "ls', "[1]", "ls"])
def test_unreadable_arguments_become_an_object_in_requests(
    env: CodingRepairEnv, arguments: str
) -> None:
    env.reset()
    function = {"name": "shell", "arguments": arguments}
    reply = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "function": function}],
    }
    env.step(json.dumps(reply))
    assistant, answer = chat_request(env)["messages"][2:]
    arguments_sent = json.loads(assistant["tool_calls"][0]["function"]["arguments"])
    assert (arguments_sent, answer["tool_call_id"]) == ({"unreadable": arguments}, "a")
    assistant = chat_request(env, "transformers")["conversation"][2]
    assert assistant["tool_calls"][0]["function"]["arguments"] == {"unreadable": arguments}
    assert env.episode.messages[2]["tool_calls"][0]["function"]["arguments"] == arguments


def test_an_empty_reply_has_a_placeholder_in_requests(env: CodingRepairEnv) -> None:
    env.reset()
    env.step("")
    assert chat_request(env)["messages"][2]["content"] not in ("", None)


def test_text_requests_alternate_between_roles(env: CodingRepairEnv) -> None:
    env.reset()
    action = f"[{shell('echo 1')}, {shell('echo 2')}]"
    env.step(action)
    assert chat_request(env, api="text")["messages"][2:] == [
        {"role": "assistant", "content": action},
        {"role": "user", "content": "1\n2"},
    ]


def test_text_requests_keep_carried_calls(env: CodingRepairEnv) -> None:
    env.reset()
    env.step(Completion("I look.", calls=[ToolCall("shell", {"cmd": "echo 1"})], reasoning="Hm."))
    assert chat_request(env, api="text")["messages"][2:] == [
        {"role": "assistant", "content": f"I look.\n{shell('echo 1')}"},
        {"role": "user", "content": "1"},
    ]


@pytest.mark.parametrize("api", ["chat", "transformers"])
def test_call_ids_are_unique_and_match_their_results(env: CodingRepairEnv, api: str) -> None:
    env.reset()
    call = {"id": "call00000", "function": {"name": "shell", "arguments": '{"cmd": "echo 3"}'}}
    env.step(f"[{shell('echo 0')}, {shell('echo 1')}]")
    env.step(shell("echo 2"))
    env.step(json.dumps({"role": "assistant", "content": "", "tool_calls": [call]}))
    request = chat_request(env, api)
    messages = request.get("messages") or request["conversation"]
    call_ids = [call["id"] for m in messages for call in m.get("tool_calls", ())]
    result_ids = [m["tool_call_id"] for m in messages if "tool_call_id" in m]
    assert call_ids == result_ids
    assert len(set(call_ids)) == 4
