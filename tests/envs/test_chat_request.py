"""What a chat model is sent: messages and tools."""

import json

import pytest
from episodes import MakeEnv, shell

from coding_gym import chat_request
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import EpisodeError, UnknownNameError


def test_a_request_has_all_messages_and_the_tools(env: CodingRepairEnv) -> None:
    with pytest.raises(EpisodeError):
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
    with pytest.raises(UnknownNameError, match="'x'"):
        chat_request(env, api="x")


def test_a_model_without_calls_is_sent_texts_in_turn(env: CodingRepairEnv) -> None:
    env.reset()
    both = f"[{shell('echo 1')}, {shell('echo 2')}]"
    env.step(both)
    assert chat_request(env, api="text")["messages"][2:] == [
        {"role": "assistant", "content": both},
        {"role": "user", "content": "1\n2"},
    ]


def test_tools_that_the_system_prompt_explains_are_not_sent_again(make_env: MakeEnv) -> None:
    env = make_env(tool_format="hermes")
    env.reset()
    assert [*chat_request(env)] == ["messages"]
    assert [*chat_request(env, api="responses")] == ["input"]


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


NAMELESS = {"function": {"arguments": "{}"}}
NAMED = {"id": "a", "function": {"name": "shell", "arguments": '{"cmd": "echo hi"}'}}


def test_nameless_calls_get_a_notice(env: CodingRepairEnv) -> None:
    env.reset()
    calls = [NAMELESS, NAMED]
    *_, info = env.step(json.dumps({"role": "assistant", "content": "Hm.", "tool_calls": calls}))
    reply, *answers = info["messages"]
    assert [call["function"]["name"] for call in reply["tool_calls"]] == ["shell"]
    assert reply["content"] == "Hm."
    assert [answer["role"] for answer in answers] == ["tool", "user"]
    assert answers[0]["tool_call_id"] == reply["tool_calls"][0]["id"]
    assert info["text"] == "\n".join(answer["content"] for answer in answers)
    turn = env.episode.turns[0]
    assert [call.call_id for call in turn.calls] == [result.call_id for result in turn.results]
    assert [bool(call.error) for call in turn.calls] == [False, True]
    for api in ("text", "transformers"):
        (messages,) = (m for key, m in chat_request(env, api).items() if key != "tools")
        assert len(messages) == 4  # templates refuse a user's message behind another or a result


@pytest.mark.parametrize("api", ["chat", "responses", "transformers"])
def test_no_id_comes_twice_and_answers_keep_theirs(env: CodingRepairEnv, api: str) -> None:
    env.reset()
    sent = {"id": "call_0", "function": {"name": "shell", "arguments": '{"cmd": "echo 3"}'}}
    env.step(f"[{shell('echo 0')}, {shell('echo 1')}]")
    env.step(shell("echo 2"))
    env.step(json.dumps({"role": "assistant", "content": "", "tool_calls": [sent]}))
    request = chat_request(env, api)
    messages = request.get("messages") or request.get("input") or request["conversation"]
    called = [call["id"] for m in messages for call in m.get("tool_calls", ())]
    answered = [m["tool_call_id"] for m in messages if "tool_call_id" in m]
    if api == "responses":
        called = [m["call_id"] for m in messages if m.get("type") == "function_call"]
        answered = [m["call_id"] for m in messages if m.get("type") == "function_call_output"]
    assert called == answered
    assert len(set(called)) == 4
