"""Tokenizer and settings for one step of TRL's GRPO on the processor."""

import json
from pathlib import Path
from typing import Any

from tiny_qwen import train_tokenizer
from trl.trainer.grpo_trainer import GRPOConfig

from coding_gym.tasks import load_tasks
from coding_gym.tools import get_toolset


def task_tokenizer(task_id: str) -> Any:
    """Returns a tokenizer trained on the prompt of a task."""
    (task,) = load_tasks(task_ids=[task_id])
    toolset = get_toolset("nano")
    return train_tokenizer(
        [task.problem_statement, toolset.system_prompt, json.dumps(toolset.schemas)]
    )


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
