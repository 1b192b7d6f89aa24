"""One GRPO step of TRL with a model of 0.5 million parameters, and tool calls in sandboxes.

A random model never writes a tool call, so a script replaces its replies: half of a group repairs
the task.
"""

import json
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

grpo = pytest.importorskip("trl.trainer.grpo_trainer")

import datasets  # noqa: E402 - after the skip
import torch  # noqa: E402
from grpo_step import settings, task_tokenizer  # noqa: E402
from tiny_qwen import build_model  # noqa: E402

from coding_gym import load_tasks  # noqa: E402
from coding_gym.adapters.trl import environment_factory, prompt_rows  # noqa: E402
from coding_gym.errors import GradingError  # noqa: E402
from coding_gym.grading import grade  # noqa: E402

# Warnings of the packages are ignored.
pytestmark = [pytest.mark.trainer, pytest.mark.filterwarnings("ignore")]

TASK = "cronwise-working-days"
GROUP = 8
COLUMN = "CodingRepair_nano"
EXPLAINED = {  # in docs/trl.md
    *("reward", "reward_std", f"rewards/{COLUMN}/mean", f"rewards/{COLUMN}/std"),
    *("frac_reward_zero_std", "completions/mean_length", "completions/clipped_ratio"),
    *("tools/call_frequency", "tools/failure_frequency", "entropy", "clip_ratio/region_mean"),
}


def call(name: str, **arguments: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


LOOK = call("shell", cmd="grep -n 'self.any' cronwise/expression.py")
OLD, NEW = "self.any_day and self.any_weekday", "self.any_day or self.any_weekday"
FIX = call("apply_patch", search=OLD, replace=NEW, file="cronwise/expression.py")
SUBMIT = call("submit")
REPAIR, FAILURE = (LOOK, FIX, SUBMIT, "Done."), (LOOK, SUBMIT, "Done.")


@pytest.fixture(scope="module")
def tokenizer(one_thread: None) -> Any:
    return task_tokenizer(TASK)


@pytest.fixture
def model(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A random model whose replies are scripted."""

    def reply(row: int, prompt: str) -> str:
        turn = prompt.count("<|im_start|>assistant") - 1
        is_repair = NEW in prompt if turn > 1 else row % 2 == 0
        return (REPAIR if is_repair else FAILURE)[turn]

    def generate(_: Any, *, input_ids: torch.Tensor, **__: Any) -> torch.Tensor:
        prompts = tokenizer.batch_decode(input_ids)
        texts = [reply(row, prompt) + tokenizer.eos_token for row, prompt in enumerate(prompts)]
        padded = tokenizer(texts, padding=True, padding_side="right", return_tensors="pt")
        return torch.cat([input_ids, padded.input_ids], 1)

    model = build_model(tokenizer)
    monkeypatch.setattr(type(model), "generate", generate)
    return model


class Watched(grpo.GRPOTrainer):
    """A trainer that keeps the last batch."""

    batch: dict[str, Any]

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        self.batch = super()._generate_and_score_completions(inputs)
        return self.batch


def log_of(trainer: Any, name: str) -> Any:
    """Returns logged values of the rollouts, which TRL does not make public."""
    return trainer._logs[name]


@pytest.fixture
def trainer(tokenizer: Any, model: Any, tmp_path: Path) -> Any:
    bounds = {"max_completion_length": 400, "max_tool_calling_iterations": 5}
    return Watched(
        model=model,
        processing_class=tokenizer,
        args=settings(tmp_path, GROUP, **bounds),
        train_dataset=datasets.Dataset.from_list(prompt_rows(task_ids=TASK) * GROUP),
        environment_factory=environment_factory(processing_class=tokenizer),
    )


def test_a_step_plays_tool_calls_and_learns_from_grades(trainer: Any) -> None:
    before = [value.clone() for value in trainer.model.parameters()]
    trainer.train()
    answers = [
        [message["content"] for message in completion if message["role"] == "tool"]
        for completion in log_of(trainer, "completion")
    ]
    results = {content for contents in answers for content in contents}
    assert {"72:        if self.any_day and self.any_weekday:", "submitted"} <= results

    rewards = list(log_of(trainer, "rewards")[COLUMN])
    assert rewards == [rollout.get_reward() for rollout in trainer.environments]
    repaired = ["patch applied successfully" in contents for contents in answers]
    assert rewards == [float(was_repaired) for was_repaired in repaired]
    assert sum(rewards) == GROUP / 2
    (logged,) = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert logged[f"rewards/{COLUMN}/mean"] == 0.5
    assert logged["tools/call_frequency"] > 1
    assert logged.keys() >= EXPLAINED

    batch = trainer.batch
    is_tool = (batch["tool_mask"] == 0) & (batch["completion_mask"] == 1)
    assert is_tool.any()
    masked = trainer.processing_class.decode(batch["completion_ids"][is_tool])
    assert "submitted" in masked
    assert '"name": "shell"' not in masked
    assert any(not b.equal(a) for b, a in zip(before, trainer.model.parameters(), strict=True))


def test_a_rollout_without_reward_is_neutral(trainer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = chain([GradingError("the grader's disk is full")], repeat(mock.DEFAULT))
    fail_once = mock.Mock(wraps=grade, side_effect=outcomes)
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", fail_once)
    trainer.train()
    rewards = torch.tensor(list(log_of(trainer, "rewards")[COLUMN]))
    advantages = torch.tensor(list(log_of(trainer, "advantages")))
    lost = rewards.isnan()
    assert lost.sum() == 1
    assert advantages[lost].item() == 0.0


TINY = ["--steps", "1", "--group", "2", "--max-tokens", "16"]


def test_smoke_trl(
    one_thread: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_example: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = run_example("train_trl.py", "--tiny", *TINY)
    assert lines[0].startswith(f"GRPO on {len(load_tasks(split='train'))} tasks")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["colocate", "http://localhost:8000"])
def test_trl_accepts_the_settings_of_vllm(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import train_trl

    monkeypatch.setattr("sys.argv", ["train_trl.py", "--lora", "--vllm", where])
    options = train_trl.settings(train_trl.read_arguments())
    config = grpo.GRPOConfig(use_cpu=True, bf16=False, num_generations=8, **options)
    assert config.use_vllm
    assert config.vllm_mode == ("colocate" if where == "colocate" else "server")
