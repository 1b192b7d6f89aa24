"""``coding-gym check-model`` with a scripted server."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from episodes import run_command
from model_server import Answer, Body, ChatServer, message

from coding_gym.action import Completion
from coding_gym.agents.live_episode import ModelError
from coding_gym.agents.model_check import best, probe_format
from coding_gym.tools import get_toolset
from coding_gym.trajectory import ModelCall

CALL = '{"name": "bash", "arguments": {"command": "ls"}}'


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
    assert "--tool-format hermes" in printed
    assert f"--base-url {server.base_url} --model tiny" in printed


def test_a_model_without_a_readable_call_ends_with_1() -> None:
    with ChatServer(lambda _: Answer(message("prose", finish_reason="length"))) as server:
        options = ("--base-url", server.base_url, "--model", "tiny", "--replies", "1")
        printed = run_command("check-model", *options, "--tool-format", "json", code=1)
    assert "0/1" in printed
    assert "coding-gym eval" not in printed


def test_a_format_that_calls_no_tool_is_refused_before_the_model_is_asked() -> None:
    with ChatServer(lambda _: Answer(message(""))) as server:
        options = ("--base-url", server.base_url, "--model", "tiny")
        run_command("check-model", *options, "--tool-format", "none-such", code=2)
        assert server.requests == []


@pytest.mark.parametrize(
    ("text", "parsed"), [(CALL, 2), (f"{CALL[:-1]}", 0), ('{"name": "bash", "argu', 0), ("", 0)]
)
def test_only_whole_calls_count(text: str, parsed: int) -> None:
    async def ask(chat: Mapping[str, Any], seed: int) -> tuple[str, ModelCall]:
        return Completion(text, [1, 2], is_cut=not parsed), ModelCall(
            completion_tokens=2, finish_reason="stop" if parsed else "length"
        )

    probe = asyncio.run(probe_format(ask, get_toolset("compact"), "json", 2))
    assert (probe.num_replies, probe.num_parsed, probe.num_with_ids) == (2, parsed, 2)
    assert (probe.num_cut, probe.num_tokens) == (2 - parsed, 4)
    assert (best([probe]) is None) == (not parsed)


def test_a_failure_ends_a_probe_and_is_kept() -> None:
    async def ask(chat: Mapping[str, Any], seed: int) -> tuple[str, ModelCall]:
        raise ModelError("System role not supported")

    probe = asyncio.run(probe_format(ask, get_toolset("compact"), "json", 2))
    assert (probe.num_replies, probe.parsed) == (0, 0.0)
    assert "System role" in probe.error
