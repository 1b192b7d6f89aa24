"""One step of TRL's GRPO on the processor, with a model of `tiny_qwen`."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from tiny_qwen import build_model, learn_by_heart, train_tokenizer
from trl.trainer.grpo_trainer import GRPOConfig, GRPOTrainer

from coding_gym.adapters.trl_episodes import EpisodeRollouts
from coding_gym.trajectory import Trajectory

MARKS = [  # the packages warn of one another's changes
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def teach(
    play: Callable[[Path], list[Trajectory]],
    replies: Sequence[str],
    row_of: Callable[[Trajectory, Any], list[int]],
    folder: Path,
) -> tuple[Any, Any]:
    """Returns a tokenizer that is trained on two episodes, and a model that writes one of them.

    Args:
        play: Plays a repair and a failure, with the tokenizer in a folder, its argument.
        replies: The replies in them.
        row_of: Returns the token ids of an episode, by its record and the tokenizer.
        folder: Keeps the tokenizer as ``trained``.
    """
    train_tokenizer(["any text"]).save_pretrained(folder / "bytes")
    texts = [json.dumps([one.messages, one.tools]) for one in play(folder / "bytes")]
    tokenizer = train_tokenizer([*texts, *replies])
    tokenizer.save_pretrained(folder / "trained")
    records = play(folder / "trained")
    assert [one.resolved for one in records] == [True, False]
    model = build_model(tokenizer)
    rows = [row_of(one, tokenizer) for one in records]
    learn_by_heart(model, tokenizer, rows, enough=0.01)
    return tokenizer, model


def settings(folder: Path, group: int, **more: Any) -> GRPOConfig:
    """Returns the trainer's settings for a step with one group of rollouts."""
    return GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=group,
        num_generations=group,
        max_steps=1,
        learning_rate=1e-3,
        beta=0.0,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        seed=1,
        **more,
    )


class Watched:
    """Rollouts that keep their last result for the trainer."""

    result: dict[str, Any]

    def __init__(self, rollouts: EpisodeRollouts) -> None:
        self._rollouts = rollouts

    def __call__(self, *args: Any) -> dict[str, Any]:
        self.result = self._rollouts(*args)
        return self.result


def make_trainer(
    tokenizer: Any, model: Any, rollouts: EpisodeRollouts, folder: Path, group: int
) -> GRPOTrainer:
    """Returns a trainer that plays one group of episodes; its ``rollout_func`` is `Watched`."""
    return GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        args=settings(folder, group, max_completion_length=120),
        train_dataset=Dataset.from_list(rollouts.rows() * group),
        rollout_func=Watched(rollouts),
        reward_funcs=rollouts.reward,
    )


@contextmanager
def restored(model: Any) -> Iterator[None]:
    """Restores the weights of a model at the end of the block."""
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    yield
    model.load_state_dict(weights)
