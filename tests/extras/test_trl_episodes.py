"""GRPO steps of TRL whose rollouts are whole episodes, with or without a harness.

A script replaces the model's replies in tests that need repairs and failures.
"""

import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from episodes import raising

pytest.importorskip("trl.trainer.grpo_trainer")

from datasets import Dataset
from grpo_step import settings, task_tokenizer
from own_harness import HARNESS, own_harness
from tiny_qwen import build_model, train_tokenizer
from trl.trainer.grpo_trainer import GRPOTrainer

from coding_gym.action import Completion
from coding_gym.adapters.trl_episodes import EpisodeRollouts
from coding_gym.agents.harness import Harness
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.model_errors import ModelError
from coding_gym.calls import ModelCall
from coding_gym.errors import GradingError, InvalidArgumentError
from coding_gym.rollout.runner import Runner

if TYPE_CHECKING:
    from coding_gym.trajectory import Trajectory

# Warnings of the packages are ignored.
pytestmark = [pytest.mark.trainer, pytest.mark.filterwarnings("ignore")]

TASK = "ledgerline-month-overlap"
FIX = "sed -i 's/or date <= self.end/or date < self.end/' ledgerline/periods.py"
GROUP = 6
EPISODE: dict[str, Any] = {"task_ids": [TASK], "max_turns": 4}

Make = Callable[..., Any]


def shell(command: str) -> str:
    call = {"name": "shell", "arguments": {"cmd": command}}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


# A repair of the task, and a failure.
SCRIPTS = [(shell(FIX), "The bug is repaired."), (shell("echo > note.txt"), "I give up.")]


@pytest.fixture(scope="module")
def tokenizer(one_thread: None) -> Any:
    return task_tokenizer(TASK)


@pytest.fixture
def make(tokenizer: Any, tmp_path: Path) -> Make:
    """Makes a trainer of a random model that plays one group of episodes."""

    def make(**options: Any) -> Any:
        rollouts, results = EpisodeRollouts(tokenizer, **EPISODE | options), []

        def play(*args: Any) -> dict[str, Any]:
            results.append(rollouts(*args))
            return results[-1]

        trainer = GRPOTrainer(
            model=build_model(tokenizer),
            processing_class=tokenizer,
            args=settings(tmp_path, GROUP, max_completion_length=120),
            train_dataset=Dataset.from_list(rollouts.rows() * GROUP),
            rollout_func=play,
            reward_funcs=rollouts.reward,
        )
        trainer.results = results
        return trainer

    return make


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], list[int]]]:
    """Scripts the replies of each attempt; returns the ids of all prompts and replies."""
    scripts, chosen = cycle(SCRIPTS), dict[int, tuple[str, ...]]()
    pairs: list[tuple[list[int], list[int]]] = []

    async def reply(agent: Any, prompt: list[int], _: Any, seed: int, turn: int) -> Any:
        if seed not in chosen:
            chosen[seed] = next(scripts)
        text = chosen[seed][turn]
        ids = [*agent._tokenizer.encode(text), *agent._tokenizer.end_ids]
        pairs.append((prompt, ids))
        call = ModelCall(finish_reason="stop", prompt_ids=tuple(prompt))
        return Completion(text, ids, [-0.5] * len(ids), model_call=call)

    monkeypatch.setattr(HuggingFaceAgent, "reply", reply)
    return pairs


def trained_pairs(batch: dict[str, Any]) -> list[tuple[list[int], list[int]]]:
    """Returns the unmasked spans of a batch, each after the ids before it."""
    names = "prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "tool_mask"
    pairs = []
    for prompt, prompt_mask, ids, mask, tool_mask in zip(*map(batch.get, names), strict=True):
        start = prompt[prompt_mask.bool()].tolist()
        text = [*start, *ids[mask.bool()].tolist()]
        flags = [0] * len(start) + tool_mask[mask.bool()].tolist()
        starts = [i for i, flag in enumerate(flags) if flag and not flags[i - 1]]
        ends = [i for i, flag in enumerate(flags, 1) if flag and not [*flags, 0][i]]
        pairs += [(text[:first], text[first:end]) for first, end in zip(starts, ends, strict=True)]
    return pairs


def weights(trainer: Any) -> list[Any]:
    return [value.clone() for value in trainer.model.parameters()]


def is_unchanged(trainer: Any, before: list[Any]) -> bool:
    return all(b.equal(a) for b, a in zip(before, trainer.model.parameters(), strict=True))


@pytest.mark.parametrize("harness", [None, HARNESS], ids=["chat", "harness"])
def test_a_step_trains_on_exactly_the_sampled_ids(
    make: Make, sampled: Any, harness: Harness | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[Any] = []
    compute_loss = GRPOTrainer.compute_loss

    def watched(trainer: Any, model: Any, inputs: Any, *rest: Any, **options: Any) -> Any:
        batches.append(inputs)
        return compute_loss(trainer, model, inputs, *rest, **options)

    monkeypatch.setattr(GRPOTrainer, "compute_loss", watched)
    played: list[Trajectory] = []
    trainer = make(harness=harness, on_done=played.append)
    before, config = weights(trainer), trainer.model.generation_config
    trainer.train()

    assert trainer.model.generation_config is config
    assert len(played) == len({record.attempt for record in played}) == GROUP
    (result,) = trainer.results
    played.sort(key=lambda record: record.attempt)
    rewards = [record.total_reward for record in played]
    assert sorted(rewards) == [0.0] * 3 + [1.0] * 3
    assert result["episode_reward"] == rewards
    assert len(sampled) == 2 * GROUP
    (batch,) = batches
    assert sorted(trained_pairs(batch)) == sorted(sampled)
    assert result["trained_part"] == [1.0] * GROUP
    assert [record.num_prefix_breaks for record in played] == [0] * GROUP
    assert not is_unchanged(trainer, before)
    (logged,) = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert float(logged["reward"]) == 0.5
    assert ("harness/trained" in logged) == (harness is not None)


def test_infrastructure_failures_change_no_weights(
    make: Make, sampled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", raising(GradingError("no disk")))
    trainer = make()
    before = weights(trainer)
    trainer.train()
    assert trainer.results[0]["episode_reward"] == [None] * GROUP
    assert is_unchanged(trainer, before)


def test_a_model_that_fails_ends_the_training(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make()
    config = trainer.model.generation_config
    monkeypatch.setattr(type(trainer.model), "generate", raising(ValueError("no memory")))
    with pytest.raises(ModelError, match="no memory"):
        trainer.train()
    assert trainer.model.training
    assert trainer.model.generation_config is config


def test_replies_are_sampled_with_the_trainers_settings(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    async def play(runner: Runner, *_: Any) -> None:
        seen.append(runner.player.describe()["sampling"])

    trainer = make()
    trainer.model.generation_config.top_k = 20  # as chat models ship it
    trainer.model.generation_config.min_p = 0.1
    monkeypatch.setattr(Runner, "run", play)
    with pytest.raises(KeyError):  # no episode was played
        trainer.train()
    assert seen == [{"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": 120}]


def test_processes_play_different_attempts(tokenizer: Any) -> None:
    numbers = []
    for index in range(2):
        rollouts = EpisodeRollouts(tokenizer, **EPISODE)
        process = SimpleNamespace(num_processes=2, process_index=index)
        (row,) = rollouts.rows()
        numbers += [rollouts._attempt(row["prompt"], process)[1] for _ in range(4)]
    assert sorted(numbers) == list(range(8))


def test_invalid_prompts_and_settings_are_refused(make: Make, tokenizer: Any) -> None:
    rollouts, trainer = EpisodeRollouts(tokenizer, **EPISODE), make()
    with pytest.raises(InvalidArgumentError, match="rows"):
        rollouts([[{"role": "user", "content": "Repair it."}]], trainer)
    trainer.args.repetition_penalty = 1.1
    with pytest.raises(InvalidArgumentError, match="repetition_penalty"):
        rollouts(rollouts.rows()[0], trainer)
    with pytest.raises(InvalidArgumentError, match="tokenizer"):
        EpisodeRollouts(tokenizer, tokenizer="coding_gym_16k")
    bare = train_tokenizer(["any text"])
    bare.chat_template = None
    with pytest.raises(InvalidArgumentError, match="chat template"):
        EpisodeRollouts(bare, **EPISODE)


def test_example_trains_with_a_harness(
    one_thread: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_example: Any
) -> None:
    folder = tmp_path / "folder"  # `run_example` puts temporary files into `tmp_path`
    folder.mkdir()
    monkeypatch.chdir(folder)
    file = own_harness(folder)
    options = ["--tiny", "--steps", "1", "--group", "2", "--max-tokens", "16"]
    output = run_example("train_trl.py", *options, "--harness", file)
    assert "'harness/trained': '1'" in "".join(output)
    assert list(folder.iterdir()) == [Path(file)]
