"""Agents, rollouts and the command of verifiers with repair episodes and a scripted server."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from episodes import raising

pytest.importorskip("verifiers", reason="needs pip install 'coding-gym[verifiers]'")

import verifiers.v1 as vf
from model_server import ChatServer, by_turn, message

from coding_gym.adapters.verifiers import (
    INFO,
    PLUGIN,
    RepairHarnessConfig,
    RepairTaskConfig,
    RepairTaskset,
    RepairTasksetConfig,
)
from coding_gym.errors import GradingError, InvalidArgumentError, SandboxError

pytestmark = pytest.mark.trainer

REPAIR = message(calls={"shell": {"cmd": "sed -i s/+/*/ shapes.py && cat shapes.py"}})
SUBMIT = message(calls={"submit": {}})
OPEN = "coding_gym.episode.config.open_sandbox"

Play = Callable[..., Any]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A server whose first reply repairs and whose second reply submits."""
    with ChatServer(by_turn(REPAIR, SUBMIT)) as running:
        yield running


@pytest.fixture
def play(server: ChatServer, tiny_row: dict[str, Any]) -> Play:
    """Plays the tiny task by an agent of verifiers and returns the trace."""

    def played(agent: dict[str, Any] | None = None, **env: Any) -> Any:
        config = RepairTasksetConfig(tasks=[tiny_row], task=RepairTaskConfig(env=env))
        (task,) = RepairTaskset(config)
        client = vf.EvalClientConfig(base_url=server.base_url, api_key_var="NO_SUCH_KEY")
        settings = vf.AgentConfig(
            harness=RepairHarnessConfig(),
            runtime=vf.SubprocessConfig(),
            model="m",
            client=client,
            **(agent or {}),
        )

        async def run() -> Any:
            async with vf.Agent(settings) as player:
                return await player.run(task)

        return asyncio.run(run())

    return played


def test_smoke_verifiers(play: Play, server: ChatServer) -> None:
    trace = play()
    assert trace.ok, trace.errors
    assert trace.reward == 1.0
    assert trace.metrics["resolved"] == 1.0
    assert (trace.metrics["infra_failed"], trace.metrics["hacked"]) == (0.0, 0.0)
    assert (trace.metrics["num_actions"], trace.metrics["num_tool_calls"]) == (2, 2)
    assert trace.info[INFO]["stop_reason"] == "submitted"
    assert trace.task.key == "shapes-area"
    roles = [message.role for message in trace.branches[0].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    assert len(trace.branches) == 1  # every prompt continues the previous one
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == [
        "shell",
        "apply_patch",
        "submit",
    ]


def test_a_rollout_that_verifiers_stops_is_graded(play: Play) -> None:
    trace = play({"max_turns": 1})
    assert trace.ok, trace.errors
    assert (trace.stop_condition, trace.reward) == ("max_turns", 1.0)
    assert trace.info[INFO]["stop_reason"] == "stopped"


def test_a_sampler_is_refused(play: Play) -> None:
    with pytest.raises(InvalidArgumentError, match="omit sampler, got 'shuffled'"):
        play(sampler="shuffled")


def test_a_limit_of_the_environment_ends_the_rollout(play: Play) -> None:
    trace = play(max_turns=1)
    assert (trace.stop_condition, trace.reward) == ("agent_completed", 1.0)
    assert trace.info[INFO]["stop_reason"] == "max_turns"


def test_a_lost_sandbox_or_grader_is_an_error(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("coding_gym.episode.episode.grade_patch", raising(GradingError("no disk")))
        trace = play()
    assert not trace.ok
    assert [(error.type, error.message) for error in trace.errors] == [("SandboxError", "no disk")]
    assert trace.rewards.get("repair") is None
    monkeypatch.setattr("gymnasium.core.Wrapper.reset", raising(SandboxError("no room")))
    trace = play()
    assert [(error.type, error.message) for error in trace.errors] == [("SandboxError", "no room")]


def test_a_text_format_is_explained_by_the_prompt(play: Play, server: ChatServer) -> None:
    calls = [{"name": "shell", "arguments": {"cmd": "ls"}}, {"name": "submit", "arguments": {}}]
    replies = [message(f"<tool_call>{json.dumps(call)}</tool_call>") for call in calls]
    with ChatServer(by_turn(*replies)) as other:
        server.base_url, server.requests = other.base_url, other.requests
        trace = play(tool_format="hermes")
    assert trace.ok, trace.errors
    assert (trace.reward, trace.metrics["num_tool_calls"]) == (0.0, 2)
    assert "tools" not in server.requests[0]
    assert "<tool_call>" in server.requests[0]["messages"][0]["content"]


def test_the_command_of_verifiers_finds_the_plugin(server: ChatServer, tmp_path: Path) -> None:
    pytest.importorskip("coding_gym_verifiers", reason="needs the package installed")
    command = [Path(sys.executable).with_name("vf-eval"), PLUGIN, "-m", "m", "-n", "1"]
    options = {
        "env.agent.runtime.type": "subprocess",
        "client.base-url": server.base_url,
        "client.api-key-var": "NO_SUCH_KEY",
        "output-dir": str(tmp_path / "out"),
    }
    process = subprocess.run(
        [*command, *(word for key, value in options.items() for word in (f"--{key}", value))],
        env={**os.environ, "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert list((tmp_path / "out").rglob("traces.jsonl"))
