"""rLLM's own engine and gateway over a scripted server; without rLLM, its published interface."""

import asyncio
import enum
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from episodes import raising
from processes import descendants, wait_gone

openai = pytest.importorskip("openai", reason="needs the extra `llm`")

# ruff: noqa: E402 - after the skip
from model_server import Answer, ChatServer, message

from coding_gym.adapters.rllm import ARTIFACT, RepairEvaluator, RepairFlow
from coding_gym.errors import InvalidArgumentError, SandboxError

pytestmark = pytest.mark.trainer

IS_INSTALLED = importlib.util.find_spec("rllm") is not None
IDS = [([1, 2], [3]), ([1, 2, 3, 4], [5, 6])]
REPAIR = message(calls={"shell": {"cmd": "sed -i s/+/*/ shapes.py"}}, ids=IDS[0])
SUBMIT = message(calls={"submit": {}}, ids=IDS[1])
ROW = {"task_id": "shapes-area", "question": "Repair it."}


@dataclass
class Task:
    id: str
    instruction: str
    metadata: dict[str, Any]


@dataclass
class Step:
    pass


@dataclass
class Trajectory:
    name: str
    steps: list[Any]


@dataclass
class Episode:
    task: Any
    trajectories: list[Any]
    artifacts: dict[str, Any]
    termination_reason: Any = None


@dataclass
class Signal:
    name: str
    value: float


@dataclass
class EvalOutput:
    reward: float
    is_correct: bool
    signals: list[Signal]


TerminationReason = enum.Enum("TerminationReason", ["ERROR"])
PUBLISHED = {
    "rllm.types": (Task, Step, Trajectory, Episode),
    "rllm.eval.types": (Signal, EvalOutput),
    "rllm.workflows.workflow": (TerminationReason,),
}


@pytest.fixture(autouse=True)
def published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rLLM is not installed, the fields of its classes that the adapter uses."""
    if not IS_INSTALLED:
        for name, classes in PUBLISHED.items():
            module = ModuleType(name)
            vars(module).update({each.__name__: each for each in classes})
            monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def replies() -> list[dict[str, Any]]:
    """What the server replies, by the number of replies before."""
    return [REPAIR, SUBMIT]


@pytest.fixture
def server(replies: list[dict[str, Any]]) -> Iterator[ChatServer]:
    def answer(body: dict[str, Any]) -> Answer:
        reply = replies[sum(one["role"] == "assistant" for one in body["messages"])]
        return Answer(reply, 400 if "error" in reply else 200)

    with ChatServer(answer) as running:
        yield running


@pytest.fixture
def play(tiny_row: dict[str, Any], server: ChatServer) -> Callable[..., Any]:
    """Plays an episode as rLLM's engine asks for it."""
    types = sys.modules.get("rllm.types") or importlib.import_module("rllm.types")

    def played(row: dict[str, Any] = ROW) -> Any:
        flow = RepairFlow(tasks=[tiny_row], max_turns=4)
        task = types.Task(id="0", instruction=row["question"], metadata=row)
        config = SimpleNamespace(base_url=server.base_url, model="policy")
        return asyncio.run(flow.arun(task, config))

    return played


def test_an_episode_is_rewarded_by_its_hidden_tests(
    play: Callable[..., Any], server: ChatServer
) -> None:
    episode = play()
    assert [one.name for one in episode.trajectories] == ["coding_repair"]
    assert episode.termination_reason is None
    assert episode.artifacts[ARTIFACT]["stop_reason"] == "submitted"
    out = RepairEvaluator().evaluate(episode.task, episode)
    assert (out.reward, out.is_correct) == (1.0, True)
    signals = {one.name: one.value for one in out.signals}
    assert signals == {"resolved": 1.0, "turn": 2.0, "tool_calls": 2.0}
    roles = [one["role"] for one in server.requests[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]
    assert server.requests[1]["model"] == "policy"


def test_a_full_context_ends_the_episode_with_a_grade(
    play: Callable[..., Any], replies: list[dict[str, Any]]
) -> None:
    replies[1] = {"error": {"message": "This model's maximum context length is 8 tokens"}}
    episode = play()
    assert RepairEvaluator().evaluate(episode.task, episode).reward == 1.0


@pytest.mark.parametrize(
    ("number", "said"), [(0, "maximum context length is 8"), (0, "no such model"), (1, "bad call")]
)
def test_any_other_refusal_is_raised(
    play: Callable[..., Any], replies: list[dict[str, Any]], number: int, said: str
) -> None:
    replies[number] = {"error": {"message": said}}
    with pytest.raises(openai.BadRequestError, match=said):
        play()


def test_a_lost_episode_is_an_error_and_no_zero(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gymnasium.core.Wrapper.reset", raising(SandboxError("no room")))
    episode = play()
    assert episode.termination_reason.name == "ERROR"
    assert episode.artifacts[ARTIFACT]["mask_sample"] is True
    assert RepairEvaluator().evaluate(episode.task, episode).reward == 0.0


def test_a_row_without_a_task_is_refused(play: Callable[..., Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="needs either a task_id or a task"):
        play({"question": "Repair it."})


def test_an_episode_of_another_flow_is_refused(play: Callable[..., Any]) -> None:
    episode = play()
    episode.artifacts.clear()
    with pytest.raises(InvalidArgumentError, match="give RepairFlow as agent_flow"):
        RepairEvaluator().evaluate(episode.task, episode)


def test_no_sandbox_is_left(play: Callable[..., Any]) -> None:
    play()
    before = set(descendants(os.getpid()))
    play()
    assert wait_gone(sorted(set(descendants(os.getpid())) - before), 30) == []


@pytest.mark.skipif(not IS_INSTALLED, reason="needs rLLM itself, from its repository")
@pytest.mark.parametrize("is_full", [False, True])
def test_rllm_trains_on_the_ids_that_the_server_sampled(
    tiny_row: dict[str, Any], server: ChatServer, replies: list[dict[str, Any]], is_full: bool
) -> None:
    from rllm.engine.agentflow_engine import AgentFlowEngine
    from rllm.gateway.manager import EvalGatewayManager
    from rllm.trainer.algorithms.config import CompactFilteringConfig, TransformConfig
    from rllm.trainer.algorithms.transform import transform_episodes_to_trajectory_groups

    if is_full:
        replies[1] = {"error": {"message": "This model's maximum context length is 8 tokens"}}
    gateway = EvalGatewayManager(server.base_url, "policy")
    gateway.add_logprobs = gateway.add_return_token_ids = True  # as in a training
    gateway.start()
    try:
        engine = AgentFlowEngine(
            RepairFlow(tasks=[tiny_row], max_turns=4), RepairEvaluator(), gateway, "policy"
        )
        episodes = asyncio.run(engine.execute_tasks([ROW, ROW], ["a", "a"]))
        engine.shutdown()
    finally:
        gateway.stop()
    assert len(server.requests) == 4  # none was played again
    assert server.requests[0]["return_token_ids"] is True
    assert [one.is_correct for one in episodes] == [True, True]
    groups, _ = transform_episodes_to_trajectory_groups(
        episodes, TransformConfig(), CompactFilteringConfig(enable=True, mask_error=True)
    )
    (group,) = groups
    assert [one.reward for one in group.trajectories] == [1.0, 1.0]
    for trajectory in group.trajectories:
        steps = [(step.prompt_ids, step.response_ids) for step in trajectory.steps]
        assert steps == IDS[: 1 if is_full else 2]
