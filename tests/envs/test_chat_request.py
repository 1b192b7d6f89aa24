"""What a chat model is sent: messages and tools."""

import json
from typing import Any

import pytest
from moves import shell

from coding_gym import chat_request
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import EpisodeError, UnknownNameError


def test_a_request_has_all_messages_and_the_tools(env: CodingRepairEnv) -> None:
    with pytest.raises(EpisodeError, match="call reset first"):
        chat_request(env)
    _, info = env.reset()
    messages = list(info["messages"])
    *_, info = env.step(shell("ls"))
    messages += info["messages"]
    request = chat_request(env)
    assert request == {"messages": messages, "tools": list(env.toolset.schemas)}
    request["messages"].clear()
    assert chat_request(env)["messages"] == messages
    assistant, answer = chat_request(env, api="transformers")["conversation"][2:]
    assert assistant["tool_calls"][0]["id"] == answer["tool_call_id"] == "call00001"
    assert assistant["content"] == ""
    assert assistant["tool_calls"][0]["function"]["arguments"] == {"cmd": "ls"}
    with pytest.raises(UnknownNameError, match="no API is called 'x'"):
        chat_request(env, api="x")


def test_a_model_without_calls_is_sent_texts_in_turn(env: CodingRepairEnv) -> None:
    env.reset()
    both = f"[{shell('echo 1')}, {shell('echo 2')}]"
    env.step(both)
    assert chat_request(env, api="text")["messages"][2:] == [
        {"role": "assistant", "content": both},
        {"role": "user", "content": "1\n2"},
    ]


def test_tools_that_the_system_prompt_explains_are_not_sent_again(
    tiny_row: dict[str, Any],
) -> None:
    env = CodingRepairEnv(tasks=[tiny_row], tool_format="hermes")
    env.reset()
    assert [*chat_request(env)] == ["messages"]
    assert [*chat_request(env, api="responses")] == ["input"]
    env.close()


def test_calls_of_the_responses_api_are_answered_by_their_ids(env: CodingRepairEnv) -> None:
    env.reset()
    call = {"name": "shell", "arguments": json.dumps({"cmd": "echo hi"})}
    reply = {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": "fc_1", "function": call}],
    }
    env.step(json.dumps(reply))
    request = chat_request(env, api="responses")
    assert request["input"][2:] == [
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "fc_1", **call},
        {"type": "function_call_output", "call_id": "fc_1", "output": "hi"},
    ]
    assert {tool["name"] for tool in request["tools"]} == {"shell", "apply_patch", "submit"}
