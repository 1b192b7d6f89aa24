"""Unmodified loops of other projects repair a bundled task in our sandbox, and are graded by us."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nano.agent", reason="needs the extra `peers`")
pytest.importorskip("minisweagent", reason="needs the extra `peers`")

import yaml
from model_server import Answer, Body, ChatServer, message
from nano.agent import Agent

from coding_gym.action import Stop
from coding_gym.agents.chat import Sampling
from coding_gym.agents.harness import HarnessPlayer
from coding_gym.agents.live_episode import LiveEpisode
from coding_gym.agents.mini_swe_agent import MiniSweEnvironment
from coding_gym.agents.model_reply import Prices
from coding_gym.agents.nano_agent import NanoEnvironment
from coding_gym.agents.players import get_player
from coding_gym.episode import Episode, EpisodeConfig
from coding_gym.errors import EpisodeError
from coding_gym.evaluation import evaluate
from coding_gym.grade import GradeReason
from coding_gym.rollout import RunFolder
from coding_gym.trajectory import Trajectory

TASK = "ledgerline-month-overlap"
FILE = "ledgerline/periods.py"
WRONG, RIGHT = "or date <= self.end", "or date < self.end"
FIX = f"sed -i 's/{WRONG}/{RIGHT}/' {FILE}"
DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
LOOK = "git log --oneline | head -n 1; cat /etc/shadow; ls /workspace | head -n 3"
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


@pytest.fixture
def episode() -> Iterator[Episode]:
    factory = EpisodeConfig.from_config(task_ids=[TASK])
    episode = factory.create(factory.tasks[0])
    episode.start()
    yield episode
    episode.close()


def nano_agent(env: NanoEnvironment, url: str) -> Any:
    agent = Agent("openai/scripted", url, token_limit=100_000, tool_limit=10, log=False, env=env)
    agent.llm_kwargs["api_key"] = "none"
    return agent


def mini_agent(env: MiniSweEnvironment, url: str) -> Any:
    """The agent and the model class of mini-swe-agent, with its own configuration file."""
    import minisweagent
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.models.litellm_model import LitellmModel

    config = yaml.safe_load((minisweagent.package_dir / "config" / "mini.yaml").read_text())
    model = LitellmModel(
        **config["model"]
        | {"model_name": "openai/scripted", "cost_tracking": "ignore_errors"}
        | {"model_kwargs": {"api_base": url, "api_key": "none"}},
    )
    limits = {"step_limit": 10, "cost_limit": 0.0}
    return DefaultAgent(model, env, **config["agent"] | limits)


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
def test_loop_is_an_agent_of_a_run_with_the_same_records(agent: str, tmp_path: Path) -> None:
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
def test_prompt_that_is_too_long_ends_the_loop_with_a_grade(
    num_replies: int, tmp_path: Path
) -> None:
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


def test_nano_agents_loop_repairs_a_bundled_task(episode: Episode) -> None:
    script = [
        shell(f"{LOOK}; echo x > new.txt"),
        message(calls={"apply_patch": {"search": WRONG, "replace": RIGHT, "file": FILE}}),
        shell("python -m pytest -q -p no:cacheprovider | tail -n 1"),
    ]
    with serving(*script) as server:
        agent = nano_agent(NanoEnvironment(episode), server.base_url)
        diff = agent.run(episode.task.problem_statement)
    assert episode.step(Stop()).reward == 1.0
    assert diff == episode.patch().text
    assert RIGHT in diff
    assert "+++ b/new.txt" in diff
    replies = [m["content"] for m in agent.messages if m["role"] == "tool"]
    assert "/etc/shadow: No such file" in replies[0]
    assert replies[1] == "patch applied successfully"
    assert " passed in " in replies[2]
    assert len(server.requests) == len(script) + 1
    assert agent.tool_stats["tool_success_rate_apply_patch"] == 1.0


def test_nano_agent_cannot_hide_that_its_sandbox_died(episode: Episode) -> None:
    def answer(_: Body) -> Answer:
        if len(server.requests) == 1:
            with episode.access() as context:
                context.sandbox.close()
        return Answer(shell("ls") if len(server.requests) == 1 else IDLE)

    with ChatServer(answer) as server, pytest.raises(EpisodeError, match="sandbox"):
        nano_agent(NanoEnvironment(episode), server.base_url).run("Repair it.")
    episode.step(Stop())
    assert (episode.stop_reason, episode.grade) == ("sandbox_error", None)


def test_mini_swe_agents_loop_repairs_a_bundled_task(episode: Episode) -> None:
    script = [
        bash(LOOK),
        bash(f"{FIX}; git diff {FILE}"),
        message("No call at all."),
        bash("sleep 60"),
        bash("echo a\0b"),
        bash(DONE),
    ]
    with serving(*script) as server:
        env = MiniSweEnvironment(episode, timeout=0.2)
        known = env.get_template_vars()
        agent = mini_agent(env, server.base_url)
        end = agent.run(episode.task.problem_statement)
        assert end == {"exit_status": "Submitted", "submission": ""}
        assert agent.serialize()["info"]["config"]["environment"]["cwd"] == "/workspace"
    assert episode.step(Stop()).reward == 1.0
    results = [json.loads(m["content"]) for m in agent.messages if m["role"] == "tool"]
    assert known.keys() == {*env.config, "system", "node", "release", "version", "machine"}
    assert known["system"] == "Linux"  # and no variable of the host is in a prompt
    assert "/etc/shadow: No such file" in results[0]["output"]
    assert RIGHT in results[1]["output"]
    assert "timed out after 0.2 seconds" in results[2]["exception_info"]
    assert "NUL" in results[3]["exception_info"]
    assert len(server.requests) == len(script)


def test_idle_models_are_not_resolved(tmp_path: Path) -> None:
    for agent, reason in (("nano-agent", "max_tool_calls"), ("mini-swe-agent", "format_errors")):
        record = play(agent, lambda _: Answer(IDLE), tmp_path / agent)
        assert record.stop_reason == reason
        assert record.grade is not None
        assert record.grade.reason is GradeReason.EMPTY_PATCH
