"""Unmodified loops of other projects repair a bundled task in our sandbox, and are graded by us."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nano.agent", reason="needs the extra `peers`")
pytest.importorskip("minisweagent", reason="needs the extra `peers`")

from model_server import Answer, Body, ChatServer, message

from coding_gym.agents.chat import Sampling
from coding_gym.agents.harness import HarnessPlayer
from coding_gym.agents.live_episode import LiveEpisode
from coding_gym.agents.model_reply import Prices
from coding_gym.agents.players import get_player
from coding_gym.evaluation import evaluate
from coding_gym.rollout import RunFolder
from coding_gym.trajectory import Trajectory

TASK = "ledgerline-month-overlap"
WRONG, RIGHT = "or date <= self.end", "or date < self.end"
FIX = f"sed -i 's/{WRONG}/{RIGHT}/' ledgerline/periods.py"
DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
IDLE = message("I would rather not.")
TOO_LONG = Answer({"error": {"message": "maximum context length is 8 tokens"}}, 400)
AGENTS = ("nano-agent", "mini-swe-agent")

# What litellm and its parts warn of is theirs.
pytestmark = [pytest.mark.trainer, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is looked up on a network, announced, or written to the home folder; no key."""
    asyncio.set_event_loop(None)  # else LiteLLM's synchronous calls open one, and leave it open
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        patch.setenv("MSWEA_SILENT_STARTUP", "1")
        patch.setenv("MSWEA_GLOBAL_CONFIG_DIR", str(tmp_path_factory.mktemp("mswea")))
        patch.setenv("MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT", "1")
        patch.delenv("OPENAI_API_KEY", raising=False)
        yield


def serving(*replies: Body) -> ChatServer:
    """A server that sends these replies in order, and then `IDLE`."""
    server = ChatServer(
        lambda _: Answer((*replies, IDLE)[min(len(server.requests) - 1, len(replies))])
    )
    return server


def shell(command: str) -> Body:
    return message("Let me see.", {"shell": {"cmd": command}})


def bash(command: str) -> Body:
    return message("Let me see.", {"bash": {"command": command}})


def run(agent: str, base_url: str, out: Path, **options: Any) -> RunFolder:
    options = {"prices": Prices(input=1e6, output=2e6), "max_retries": 0, **options}
    player = get_player(agent, model="tiny", base_url=base_url, **options)
    return evaluate(out, player, tasks="bundled", episode={"task_ids": [TASK], "max_turns": 6})


def play(agent: str, answer: Callable[[Body], Answer], out: Path, **options: Any) -> Trajectory:
    with ChatServer(answer) as server:
        folder = run(agent, server.base_url, out, **options)
    (record,) = [*folder.trajectories(), *folder.errors()]
    return record


@pytest.mark.parametrize("agent", AGENTS)
def test_loop_repairs_a_task_and_has_usual_records(agent: str, tmp_path: Path) -> None:
    call = shell if agent == "nano-agent" else bash
    with serving(call(FIX), call("false"), *[call(DONE)] * (agent != "nano-agent")) as server:
        sampling = Sampling(temperature=0.25, max_tokens=300)
        folder = run(agent, server.base_url, tmp_path / "run", sampling=sampling)
    (record,) = folder.trajectories()
    assert record.resolved
    assert RIGHT in record.patch
    assert record.stop_reason == ("no_tool_call" if agent == "nano-agent" else "submitted")
    assert (record.agent, record.toolset, record.model) == (agent, agent, "tiny")
    assert (record.usage["prompt_tokens"], record.usage["completion_tokens"]) == (30, 15)
    assert record.cost == pytest.approx(60)
    assert [len(turn.calls) for turn in record.turns[:2]] == [1, 1]
    assert [turn.results[0].ok for turn in record.turns[:2]] == [True, False]
    assert record.turns[1].observation == record.turns[1].results[0].content
    for kept, sent in zip(record.messages, server.requests[2]["messages"], strict=False):
        assert kept.items() <= sent.items()
    assert list(record.tools) == server.requests[0]["tools"]
    for request in server.requests:
        assert (request["model"], request["seed"]) == ("tiny", record.seed)
        assert (request["temperature"], request["max_tokens"]) == (0.25, 300)
    assert folder.config["agent"]["version"]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    ("answer", "error_class"),
    [
        (Answer({"error": {"message": "no"}}, 401), "refused"),
        (Answer({"error": {"message": "no"}}, 500), "model"),
        (Answer(IDLE, delay_s=60), "timeout"),
    ],
)
def test_fault_of_the_server_has_its_class(
    agent: str, answer: Answer, error_class: str, tmp_path: Path
) -> None:
    record = play(agent, lambda _: answer, tmp_path / "run", model_timeout_s=1)
    assert record.error_class == error_class
    assert record.grade is None


@pytest.mark.parametrize("num_replies", [0, 1])
def test_too_long_prompt_ends_the_loop_with_a_grade(num_replies: int, tmp_path: Path) -> None:
    replies = iter([Answer(shell("ls"))] * num_replies)
    record = play("nano-agent", lambda _: next(replies, TOO_LONG), tmp_path / "run")
    assert record.stop_reason == "stopped"
    assert record.grade is not None


@pytest.mark.parametrize("agent", AGENTS)
def test_dead_sandbox_ends_the_loop(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, started = HarnessPlayer.play, []

    async def noted(player: HarnessPlayer, live: LiveEpisode) -> None:
        started.append(live.episode)
        await played(player, live)

    def answer(_: Body) -> Answer:
        with started[0].access() as context:
            context.sandbox.close()
        return Answer(shell("ls") if agent == "nano-agent" else bash("ls"))

    monkeypatch.setattr(HarnessPlayer, "play", noted)
    record = play(agent, answer, tmp_path / "run")
    assert record.error_class == "sandbox"
    assert record.usage["model_calls"] == 1


@pytest.mark.parametrize("agent", AGENTS)
def test_second_interrupt_ends_a_loop_that_waits_for_its_model(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = HarnessPlayer.play

    async def cancelled(player: HarnessPlayer, live: LiveEpisode) -> None:
        task = asyncio.ensure_future(played(player, live))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        await task

    monkeypatch.setattr(HarnessPlayer, "play", cancelled)
    with ChatServer(lambda _: Answer(IDLE, delay_s=float("inf"))) as server:
        assert list(run(agent, server.base_url, tmp_path / "run").outcomes()) == []
