"""Agents that know nothing of an episode ask the model at its endpoint; the model is a script."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from model_server import Answer, Body, ChatServer, message

from coding_gym.adapters.capture import CapturePlayer, segments
from coding_gym.adapters.capture_server import Endpoint
from coding_gym.agents.chat import Sampling
from coding_gym.agents.model_client import OpenAIClient
from coding_gym.episode import Episode
from coding_gym.evaluation import evaluate
from coding_gym.trajectory import Trajectory

openai = pytest.importorskip("openai")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

FIX = "sed -i 's/width + height/width * height/' shapes.py"
CHAT = [{"role": "user", "content": "Repair it."}]
SHELL = {
    "type": "function",
    "function": {
        "name": "shell",
        "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}},
    },
}


@contextmanager
def client(endpoint: Endpoint) -> Iterator[Any]:
    with openai.OpenAI(base_url=endpoint.base_url, api_key=endpoint.api_key) as opened:
        yield opened


def run_shell(episode: Episode, arguments: str) -> str:
    with episode.access() as context:
        return context.sandbox.run(json.loads(arguments)["cmd"]).output


def chat_loop(episode: Episode, endpoint: Endpoint) -> None:
    """A small agent that speaks Chat Completions."""
    messages: list[Any] = list(CHAT)
    while True:
        with client(endpoint) as asked:
            reply = asked.chat.completions.create(
                model="any", messages=messages, tools=[SHELL], temperature=0.1
            )
        said = reply.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return
        for call in said.tool_calls:
            output = run_shell(episode, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": output})


def responses_loop(episode: Episode, endpoint: Endpoint) -> None:
    """The same one in terms of the Responses API."""
    items: list[Any] = list(CHAT)
    tool = {"type": "function", **SHELL["function"]}
    while True:
        with client(endpoint) as asked:
            reply = asked.responses.create(
                model="any", instructions="Be brief.", input=items, tools=[tool]
            )
        items += [item.model_dump(exclude_none=True) for item in reply.output]
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            assert reply.output_text == "Done."
            return
        for call in calls:
            output = run_shell(episode, call.arguments)
            items.append(
                {"type": "function_call_output", "call_id": call.call_id, "output": output}
            )


def scripted(*replies: Body) -> ChatServer:
    server = ChatServer(lambda _: Answer(replies[min(len(server.requests), len(replies)) - 1]))
    return server


def repairing() -> ChatServer:
    """Serves a repair in two replies; the second prompt continues the first."""
    return scripted(
        message(calls={"shell": {"cmd": FIX}}, ids=([1, 2], [3, 4])),
        message("Done.", ids=([1, 2, 3, 4, 5], [6, 7, 8])),
    )


def play(
    harness: Callable[[Episode, Endpoint], object],
    server: ChatServer,
    row: Any,
    out: Path,
    *,
    episode: Any = None,
    **options: Any,
) -> Trajectory:
    with server:
        player = CapturePlayer(
            harness, OpenAIClient(server.base_url, max_retries=0), model="tiny", **options
        )
        folder = evaluate(out, player, tasks=[row], episode=episode or {})
    (record,) = [*folder.trajectories(), *folder.errors()]
    return record


@pytest.mark.parametrize("loop", [chat_loop, responses_loop])
def test_ids_of_an_agents_requests_become_one_sample(
    loop: Any, tiny_row: Any, tmp_path: Path
) -> None:
    calls: list[Any] = []
    sampling = Sampling(temperature=0.7)
    options = {"sampling": sampling, "on_call": lambda *call: calls.append(call)}
    server = repairing()
    record = play(loop, server, tiny_row, tmp_path / "run", **options)
    assert record.resolved
    assert record.total_reward == 1.0
    assert (record.agent, record.model, record.num_prefix_breaks) == (loop.__name__, "tiny", 0)
    assert segments(record) == [
        {
            "prompt_ids": [1, 2],
            "completion_ids": [3, 4, 5, 6, 7, 8],
            "env_mask": [1, 1, 0, 1, 1, 1],
            "logprobs": [-0.5, -0.5, 0.0, -0.5, -0.5, -0.5],
        }
    ]
    assert [turn.results[0].content for turn in record.turns[:1]] == [""]
    assert [call[1]["temperature"] for call in calls] == [0.7, 0.7]
    assert [call[2].prompt_ids for call in calls] == [(1, 2), (1, 2, 3, 4, 5)]
    sent = server.requests[1]
    assert sent["tools"] == [SHELL]
    assert sent["return_token_ids"] is True
    roles = [each["role"] for each in sent["messages"]]
    assert roles[-3:] == ["user", "assistant", "tool"]
    assert sent["messages"][-2]["tool_calls"][0]["function"]["name"] == "shell"


def test_server_without_ids_gives_a_record_and_no_sample(
    tiny_row: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = scripted(message(calls={"shell": {"cmd": FIX}}), message("Done."))
    record = play(chat_loop, server, tiny_row, tmp_path / "run")
    assert record.resolved
    assert not any(turn.exact for turn in record.turns[:2])
    assert record.num_prefix_breaks is None
    assert segments(record) == []
    assert caplog.text.count("gives no token ids") == 1


def test_token_of_another_or_ended_episode_is_refused(tiny_row: Any, tmp_path: Path) -> None:
    seen: list[Endpoint] = []

    def harness(_: Episode, endpoint: Endpoint) -> None:
        wrong = (endpoint.api_key[:-1], "none", endpoint.api_key.swapcase())
        for other in [*seen, *(Endpoint(endpoint.base_url, token) for token in wrong)]:
            with client(other) as asked, pytest.raises(openai.AuthenticationError):
                asked.models.list()
        with client(endpoint) as asked:
            assert [each.id for each in asked.models.list()] == ["tiny"]
        seen.append(endpoint)

    with ChatServer(lambda _: Answer(message("Done."))) as server:
        player = CapturePlayer(harness, OpenAIClient(server.base_url), model="tiny")
        folder = evaluate(tmp_path / "run", player, tasks=[tiny_row], attempts=2)
    assert not [*folder.errors()]
    assert len({each.api_key for each in seen}) == 2
    assert all(each.api_key not in repr(each) for each in seen)
    assert not server.requests


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_stream_gives_the_reply_at_once(api: str, tiny_row: Any, tmp_path: Path) -> None:
    def harness(_: Episode, endpoint: Endpoint) -> None:
        with client(endpoint) as asked:
            if api == "chat":
                first, last = asked.chat.completions.create(
                    model="any", messages=CHAT, stream=True, stream_options={"include_usage": True}
                )
                assert first.choices[0].delta.content == "Let me see."
                assert first.choices[0].delta.tool_calls[0].function.arguments == '{"cmd": "ls"}'
                assert first.choices[0].finish_reason == "tool_calls"
                assert last.usage.completion_tokens == 5
            else:
                with asked.responses.stream(model="any", input="Repair it.") as stream:
                    text = [event.delta for event in stream if "text.delta" in event.type]
                    final = stream.get_final_response()
                assert text == ["Let me see."]
                assert final.output_text == "Let me see."
                assert final.output[1].arguments == '{"cmd": "ls"}'

    server = scripted(message("Let me see.", {"shell": {"cmd": "ls"}}, ids=([1], [2])))
    record = play(harness, server, tiny_row, tmp_path / "run")
    assert not record.error
    assert len(segments(record)) == 1


def ask_forever(endpoint: Endpoint) -> None:
    with client(endpoint) as asked:
        while True:
            asked.chat.completions.create(model="any", messages=CHAT)


def test_limits_of_the_episode_end_an_agent_that_goes_on(tiny_row: Any, tmp_path: Path) -> None:
    def harness(_: Episode, endpoint: Endpoint) -> None:
        with pytest.raises(openai.AuthenticationError, match="max_"):
            ask_forever(endpoint)
        raise RuntimeError("no reply")

    def server() -> ChatServer:
        return scripted(message("Hm.", usage=(10, 5)))

    record = play(harness, server(), tiny_row, tmp_path / "turns", episode={"max_turns": 3})
    assert (record.stop_reason, record.usage["turns"], record.error) == ("max_turns", 4, "")
    limits = {"limits": {"max_tokens": 15}, "tokenizer": "coding_gym_16k"}
    record = play(harness, server(), tiny_row, tmp_path / "tokens", episode=limits)
    assert (record.stop_reason, record.usage["model_calls"]) == ("max_tokens", 1)


def test_agent_that_fails_is_graded_only_after_a_reply(
    tiny_row: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def early(*_: Any) -> None:
        raise RuntimeError("no configuration")

    def late(episode: Episode, endpoint: Endpoint) -> None:
        chat_loop(episode, endpoint)
        raise RuntimeError("cannot read the reply")

    record = play(early, repairing(), tiny_row, tmp_path / "early")
    assert (record.error_class, record.grade) == ("agent", None)
    assert "no configuration" in record.error
    assert "ended by an error (agent): RuntimeError: no configuration" in caplog.text
    record = play(late, repairing(), tiny_row, tmp_path / "late")
    assert record.error_class == ""
    assert record.resolved
    assert "cannot read the reply" in record.error


@pytest.mark.parametrize("num_replies", [0, 1])
def test_dead_sandbox_is_no_verdict(num_replies: int, tiny_row: Any, tmp_path: Path) -> None:
    def harness(episode: Episode, endpoint: Endpoint) -> None:
        with client(endpoint) as asked:
            for _ in range(num_replies):
                asked.chat.completions.create(model="any", messages=CHAT)
        with episode.access() as context:
            context.sandbox.close()
        run_shell(episode, '{"cmd": "ls"}')

    record = play(harness, repairing(), tiny_row, tmp_path / "run")
    assert (record.error_class, record.grade) == ("sandbox", None)


def test_servers_refusal_is_no_verdict_and_is_not_asked_again(
    tiny_row: Any, tmp_path: Path
) -> None:
    server = ChatServer(lambda _: Answer({"error": {"message": "no"}}, 401))
    record = play(chat_loop, server, tiny_row, tmp_path / "run")
    assert (record.error_class, record.grade) == ("refused", None)
    assert len(server.requests) == 1


def test_agent_may_shorten_a_prompt_that_is_too_long(tiny_row: Any, tmp_path: Path) -> None:
    def harness(episode: Episode, endpoint: Endpoint) -> None:
        with client(endpoint) as asked:
            with pytest.raises(openai.BadRequestError) as refused:
                asked.chat.completions.create(model="any", messages=CHAT * 2)
            assert refused.value.code == "context_length_exceeded"
        chat_loop(episode, endpoint)

    too_long = Answer({"error": {"message": "maximum context length is 8 tokens"}}, 400)
    done = Answer(message("Done.", ids=([1], [2])))
    server = ChatServer(lambda body: too_long if len(body["messages"]) > 1 else done)
    record = play(harness, server, tiny_row, tmp_path / "run")
    assert (record.error, record.stop_reason) == ("", "stopped")
    assert record.grade is not None
    assert len(segments(record)) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"messages": []},
        {"messages": CHAT, "n": 2},
        {"input": "Go on.", "previous_response_id": "resp_1"},
        {"input": [{"type": "computer_call"}]},
        {"input": "Search.", "tools": [{"type": "web_search"}]},
    ],
)
def test_request_that_cannot_be_kept_exactly_is_refused(
    body: Body, tiny_row: Any, tmp_path: Path
) -> None:
    def harness(_: Episode, endpoint: Endpoint) -> None:
        path = "/responses" if "input" in body else "/chat/completions"
        with client(endpoint) as asked, pytest.raises(openai.BadRequestError):
            asked.post(path, cast_to=object, body=body)

    server = scripted(message("Done."))
    assert not play(harness, server, tiny_row, tmp_path / "run").error
    assert not server.requests
