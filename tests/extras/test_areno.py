"""AReno's own loaders, batches and trajectories, and its command up to its model."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from episodes import raising
from processes import descendants, wait_gone
from tiny_qwen import CHATML, train_tokenizer

pytest.importorskip("areno", reason="needs the extra `areno`")

import torch
import transformers
from areno.api import agentic, rewards
from areno.api.agentic import AgentBatch, AgentTrajectory
from model_server import Answer, ChatServer, message
from safetensors.torch import save_file

from coding_gym import load_tasks
from coding_gym.adapters.areno import FIELD, agent_function, load_training_dataset, reward_fn
from coding_gym.errors import InvalidArgumentError, SandboxError

pytestmark = pytest.mark.trainer

EXAMPLE = Path(__file__).parents[2] / "examples" / "areno_agent.py"
REPAIR = message(calls={"shell": {"cmd": "sed -i s/+/*/ shapes.py"}})
SUBMIT = message(calls={"submit": {}})
TOKENS = {"input_tokens": [1, 2], "response_tokens": [3], "response_logprobs": [-0.5]}

Play = Callable[..., AgentTrajectory]


class Context:
    """What an agent function reads of AReno's session."""

    api_key = "areno-agentic"

    def __init__(self, server: ChatServer) -> None:
        self._server = server

    def get_base_url(self) -> str:
        return self._server.base_url


@pytest.fixture
def replies() -> dict[int, dict[str, Any]]:
    """What the proxy replies, by the number of replies before."""
    return {0: REPAIR, 1: SUBMIT}


@pytest.fixture
def play(tiny_row: dict[str, Any], replies: dict[int, dict[str, Any]]) -> Iterator[Play]:
    def answer(body: dict[str, Any]) -> Answer:
        number = sum(one["role"] == "assistant" for one in body["messages"])
        return Answer({"areno": TOKENS, **replies[number]})

    with ChatServer(answer) as server:

        def played(batch: AgentBatch, **env: Any) -> AgentTrajectory:
            run_agent = agent_function(**{"tasks": [tiny_row]} | env)
            trajectory: AgentTrajectory = asyncio.run(run_agent(Context(server), batch))  # type: ignore[arg-type]
            return trajectory

        yield played


@pytest.fixture
def batch() -> AgentBatch:
    return AgentBatch([{"task_id": "shapes-area"}], ["Repair it."], [[1]], n_samples=2)


def reward_of(batch: AgentBatch, number: int) -> float:
    record = rewards.RewardRecord(
        prompt="",
        completion="",
        source_record=batch.records[0],
        metadata={"prompt_index": 0, "sample_index": number},
    )
    return rewards.score_reward_records(reward_fn, [record])[0]


def test_every_sample_is_played_and_rewarded(play: Play, batch: AgentBatch) -> None:
    trajectory = play(batch)
    assert trajectory.invalid_items == []
    numbers = [turn.item.sample_index for turn in trajectory.turns]
    assert numbers == [0, 0, 1, 1]
    assert trajectory.turns[0].response_tokens == [3]
    assert [call["function"]["name"] for call in trajectory.turns[0].parsed_tool_calls] == ["shell"]
    roles = [one["role"] for one in trajectory.turns[1].messages]
    assert roles == ["system", "user", "assistant", "tool"]
    assert [tool["function"]["name"] for tool in trajectory.turns[0].tools] == [
        "shell",
        "apply_patch",
        "submit",
    ]
    assert [reward_of(batch, number) for number in (0, 1)] == [1.0, 1.0]
    assert batch.records[0][FIELD]["1"]["stop_reason"] == "submitted"


def test_a_full_context_ends_the_episode_with_a_grade(
    play: Play, batch: AgentBatch, replies: dict[int, dict[str, Any]]
) -> None:
    empty = {"input_tokens": [], "response_tokens": [], "response_logprobs": [], "filtered": True}
    replies[1] = {**message("", finish_reason="length"), "areno": empty}
    trajectory = play(batch)
    assert [turn.filtered for turn in trajectory.turns] == [False, True, False, True]
    assert reward_of(batch, 0) == 1.0
    # A turn beyond the limit that the refusal names would cost the episode.
    replies[1]["usage"]["max_sequence_len"] = 2
    assert [turn.filtered for turn in play(batch).turns] == [True, True]
    replies[1]["usage"]["max_sequence_len"] = 3
    assert [turn.filtered for turn in play(batch).turns] == [False, True, False, True]


def test_a_lost_episode_is_an_invalid_item(
    play: Play, batch: AgentBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gymnasium.core.Wrapper.reset", raising(SandboxError("no room")))
    trajectory = play(batch)
    assert (trajectory.turns, len(trajectory.invalid_items)) == ([], len(batch))
    with pytest.raises(InvalidArgumentError, match="sample 0 has no episode"):
        reward_of(batch, 0)


def test_no_sandbox_is_left(play: Play, batch: AgentBatch) -> None:
    play(batch)
    before = set(descendants(os.getpid()))
    play(batch)
    assert wait_gone(sorted(set(descendants(os.getpid())) - before), 30) == []


def test_areno_loads_the_example() -> None:
    assert callable(agentic.load_agent_run_fn(str(EXAMPLE)))
    assert callable(rewards.load_reward_fn(str(EXAMPLE)))
    dataset = load_training_dataset("bundled#train")
    assert set(dataset["task_id"]) == {task.task_id for task in load_tasks(split="train")}


def weights(config: transformers.Qwen3Config) -> dict[str, torch.Tensor]:
    """Returns one layer of Qwen3, without transformers' model, which needs torchvision."""
    hidden, inner, size = config.hidden_size, config.intermediate_size, config.head_dim
    query, key = config.num_attention_heads * size, config.num_key_value_heads * size
    layer = {
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
        "self_attn.q_proj": (query, hidden),
        "self_attn.k_proj": (key, hidden),
        "self_attn.v_proj": (key, hidden),
        "self_attn.o_proj": (hidden, query),
        "self_attn.q_norm": (size,),
        "self_attn.k_norm": (size,),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    shapes = {f"model.layers.0.{name}": shape for name, shape in layer.items()}
    embedding = (config.vocab_size, hidden)
    shapes |= {"model.embed_tokens": embedding, "model.norm": (hidden,), "lm_head": embedding}
    return {f"{name}.weight": torch.randn(shape) for name, shape in shapes.items()}


@pytest.mark.timeout(600)
def test_the_command_plays_until_its_model_is_asked(tmp_path: Path, rows: Path) -> None:
    tokenizer = train_tokenizer(["any text"], chat_template=CHATML)
    tokenizer.save_pretrained(tmp_path)
    tiny = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "head_dim": 16}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    config = transformers.Qwen3Config(vocab_size=len(tokenizer), **tiny, **heads)
    config.save_pretrained(tmp_path)
    save_file(weights(config), tmp_path / "model.safetensors")
    ours = EXAMPLE.read_text(encoding="utf-8").replace("max_turns=30", f"tasks={str(rows)!r}")
    agent = tmp_path / "agent.py"
    agent.write_text(ours, encoding="utf-8")
    words = ["train", "--algo", "grpo", "--ckpt", str(tmp_path), "--dataset-path", str(rows)]
    words += ["--world-size", "1", "--tp-size", "1", "--n-samples", "2", "--batch-size", "1"]
    for option in ("--dataset-loader-fn", "--agent-fn", "--reward-fn-path"):
        words += [option, str(agent)]
    done = subprocess.run(
        [Path(sys.executable).with_name("areno"), *words],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    # The proxy refuses prompts of more tokens than its default, so the model is not asked.
    assert "filtered (0 overlong, 2 invalid)" in done.stderr
