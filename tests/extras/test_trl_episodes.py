"""One GRPO step of TRL whose rollouts are whole episodes, played by a model taught by heart."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from episodes import raising

pytest.importorskip("trl.trainer.grpo_trainer")

from grpo_step import MARKS, make_trainer, restored, teach
from tiny_qwen import train_tokenizer

from coding_gym.adapters.trl_episodes import EpisodeRollouts
from coding_gym.agents.live_episode import ModelError
from coding_gym.episode import Episode, EpisodeConfig
from coding_gym.errors import GradingError, InvalidArgumentError
from coding_gym.rollout.runner import Runner
from coding_gym.trajectory import Trajectory

pytestmark = [pytest.mark.trainer, *MARKS]

TASK = "cronwise-working-days"
GROUP = 8
BROKEN = '<tool_call>\n{"name": "shell", "arguments": oops}\n</tool_call>'
FIX = (
    '<tool_call>\n{"name": "apply_patch", "arguments": {"search": "self.any_day and '
    'self.any_weekday", "replace": "self.any_day or self.any_weekday", "file": '
    '"cronwise/expression.py"}}\n</tool_call>'
)
SUBMIT = '<tool_call>\n{"name": "submit", "arguments": {}}\n</tool_call>'
WITH_REPAIR, WITHOUT = (BROKEN, FIX, SUBMIT), (BROKEN, SUBMIT)
EPISODE: dict[str, Any] = {"task_ids": [TASK], "max_turns": 5}


def demonstrate(folder: Path) -> list[Trajectory]:
    """Plays both scripts and returns the records."""
    factory = EpisodeConfig.from_config(**EPISODE, tokenizer=f"hf:{folder}")
    records = []
    for actions in (WITH_REPAIR, WITHOUT):
        episode = Episode(factory.tasks[0], factory)
        episode.start()
        for action in actions:
            episode.step(action)
        episode.close()
        records.append(episode.trajectory())
    return records


def example_ids(record: Trajectory, tokenizer: Any) -> list[int]:
    example = record.to_training_example(include_inexact=True)
    return [*example["prompt_ids"], *example["completion_ids"], tokenizer.eos_token_id]


@pytest.fixture(scope="module")
def taught(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The tokenizer, and a model that writes one of two episodes."""
    folder = tmp_path_factory.mktemp("tokenizers")
    return teach(demonstrate, [BROKEN, FIX, SUBMIT], example_ids, folder)


@pytest.fixture
def played() -> list[Trajectory]:
    return []


@pytest.fixture
def trainer(taught: Any, played: list[Trajectory], tmp_path: Path) -> Iterator[Any]:
    tokenizer, model = taught
    rollouts = EpisodeRollouts(tokenizer, on_done=played.append, **EPISODE)
    with restored(model):
        yield make_trainer(tokenizer, model, rollouts, tmp_path, GROUP)


def test_a_step_learns_from_the_ids_that_were_sampled(
    trainer: Any, played: list[Trajectory]
) -> None:
    before = [value.clone() for value in trainer.model.parameters()]
    config = trainer.model.generation_config
    trainer.train()
    assert trainer.model.generation_config is config
    assert len(played) == len({one.attempt for one in played}) == GROUP
    by_attempt = sorted(played, key=lambda one: one.attempt)
    rewards = [one.total_reward for one in by_attempt]
    (logged,) = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert float(logged["reward"]) == pytest.approx(sum(rewards) / GROUP, abs=1e-3)
    assert rewards == [float("self.any_day or self" in one.patch) for one in by_attempt]
    # An unreadable call gets an error message, and the episode continues.
    assert any(len(one.turns) > 1 and not one.turns[0].results for one in played)

    result = trainer.rollout_func.result
    assert result["episode_reward"] == rewards
    pairs = zip(by_attempt, result["completion_ids"], result["env_mask"], strict=True)
    for one, ids, mask in pairs:
        sampled = [token for token, is_own in zip(ids, mask, strict=True) if is_own]
        assert sampled == [token for turn in one.turns for token in turn.token_ids]
    learned = any(not b.equal(a) for b, a in zip(before, trainer.model.parameters(), strict=True))
    assert learned == (len(set(rewards)) == 2)


def test_infrastructure_failures_change_no_weights(
    trainer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coding_gym.episode.episode.grade_patch", raising(GradingError("no disk")))
    before = [value.clone() for value in trainer.model.parameters()]
    trainer.train()
    assert trainer.rollout_func.result["episode_reward"] == [None] * GROUP
    assert all(b.equal(a) for b, a in zip(before, trainer.model.parameters(), strict=True))


def test_a_model_that_fails_ends_the_training(
    trainer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = trainer.model.generation_config
    monkeypatch.setattr(type(trainer.model), "generate", raising(ValueError("no memory")))
    with pytest.raises(ModelError, match="no memory"):
        trainer.train()
    assert trainer.model.training
    assert trainer.model.generation_config is config


def test_replies_are_sampled_with_the_trainers_settings(
    trainer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    async def play(runner: Runner, *_: Any) -> None:
        seen.append(runner.player.describe()["sampling"])

    trainer.model.generation_config.top_k = 20  # as chat models ship it
    trainer.model.generation_config.min_p = 0.1
    monkeypatch.setattr(Runner, "run", play)
    with pytest.raises(KeyError):  # nothing was played
        trainer.train()
    assert seen == [{"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": 120}]


def test_processes_play_different_attempts(taught: tuple[Any, Any]) -> None:
    numbers = []
    for index in range(2):
        rollouts = EpisodeRollouts(taught[0], **EPISODE)
        process = SimpleNamespace(num_processes=2, process_index=index)
        (row,) = rollouts.rows()
        numbers += [rollouts._attempt(row["prompt"], process)[1] for _ in range(4)]
    assert sorted(numbers) == list(range(8))


def test_invalid_prompts_and_settings_are_refused(trainer: Any) -> None:
    rollouts = EpisodeRollouts(trainer.processing_class, **EPISODE)
    with pytest.raises(InvalidArgumentError, match="rows"):
        rollouts([[{"role": "user", "content": "Repair it."}]], trainer)
    trainer.args.repetition_penalty = 1.1
    with pytest.raises(InvalidArgumentError, match="repetition_penalty"):
        rollouts(rollouts.rows()[0], trainer)
    with pytest.raises(InvalidArgumentError, match="tokenizer"):
        EpisodeRollouts(trainer.processing_class, tokenizer="coding_gym_16k")
    bare = train_tokenizer(["any text"])
    bare.chat_template = None
    with pytest.raises(InvalidArgumentError, match="chat template"):
        EpisodeRollouts(bare, **EPISODE)
