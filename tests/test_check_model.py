"""``coding-gym check-model`` with a scripted server."""

import pytest
from episodes import run_command
from model_server import Answer, Body, ChatServer, message

CALL = '{"name": "shell", "arguments": {"cmd": "ls"}}'


def test_the_format_that_a_server_writes_is_in_the_command() -> None:
    def answer(body: Body) -> Answer:
        system = body["messages"][0]["content"]
        text = f"<tool_call>{CALL}</tool_call>" if "<tool_call>" in system else "I shall look."
        return Answer(message(text, ids=([1], [2, 3])))

    with ChatServer(answer) as server:
        printed = run_command("check-model", "--base-url", server.base_url, "--model", "tiny")
        assert {"tools" in body for body in server.requests} == {True, False}
    lines = {line.split()[0]: line.split() for line in printed.splitlines() if line.strip()}
    assert lines["hermes"][1:4] == ["4/4", "4/4", "0/4"]
    assert lines["pythonic"][1] == "0/4"
    assert "--tool-format hermes --out" in printed
    assert f"--model tiny --base-url {server.base_url}" in printed
    assert {body["max_tokens"] for body in server.requests} == {128}


def test_options_of_the_user_are_in_the_command() -> None:
    answer = Answer(message(calls={"bash": {"command": "ls"}}))
    with ChatServer(lambda _: answer) as server:
        server_options = ("--base-url", server.base_url, "--model", "tiny", "--tool-format", "auto")
        chosen = ("--toolset", "compact", "--sampling", "temperature=0.5")
        printed = run_command("check-model", *server_options, *chosen)
    assert {body["temperature"] for body in server.requests} == {0.5}
    assert " ".join(("--tool-format auto", *chosen, "--out")) in printed


def test_a_model_without_a_readable_call_ends_with_1() -> None:
    with ChatServer(lambda _: Answer(message("prose", finish_reason="length"))) as server:
        options = ("--base-url", server.base_url, "--model", "tiny")
        printed = run_command("check-model", *options, "--tool-format", "json", code=1)
    assert "0/4" in printed
    assert "coding-gym eval" not in printed


def test_agents_without_a_model_are_refused() -> None:
    run_command("check-model", "--agent", "gold", "--model", "tiny", code=2)


def test_a_format_that_calls_no_tool_is_refused_before_the_model_is_asked() -> None:
    with ChatServer(lambda _: Answer(message(""))) as server:
        options = ("--base-url", server.base_url, "--model", "tiny")
        run_command("check-model", *options, "--tool-format", "none-such", code=2)
        assert server.requests == []


@pytest.mark.parametrize(
    "problem", ["System role not supported", "maximum context length is 512 tokens"]
)
def test_refused_requests_end_with_one_message_and_1(problem: str) -> None:
    with ChatServer(lambda _: Answer({"error": problem}, status=400)) as server:
        options = ("--base-url", server.base_url, "--model", "tiny")
        printed = run_command("check-model", *options, code=1)
    assert printed.count(problem) == 1
    assert "auto, json, hermes, pythonic: " in printed
    assert "fine-tune" not in printed
