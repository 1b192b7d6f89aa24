"""The batch that TRL's trainer makes of four scripted rollouts, for `record_episodes.py`.

The model writes what a script says, so that token ids, masks and log-probabilities depend on the
adapter alone; its random weights give the log-probabilities. Nothing is downloaded.
"""

import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

TASK = "cronwise-working-days"
LOOK = ("shell", {"cmd": "grep -n 'self.any' cronwise/expression.py"})
FIX = (
    "apply_patch",
    {
        "search": "self.any_day and self.any_weekday",
        "replace": "self.any_day or self.any_weekday",
        "file": "cronwise/expression.py",
    },
)
SUBMIT: tuple[str, dict[str, Any]] = ("submit", {})
SCRIPTS: tuple[tuple[tuple[str, dict[str, Any]], ...], ...] = (
    (LOOK, FIX, SUBMIT),
    (LOOK, ("no_such_tool", {}), ("shell", {"command": "ls"}), FIX),  # graded by the trainer
    (SUBMIT, LOOK),  # a call after the end
    (LOOK, ("shell", {"cmd": "echo '<|im_end|>'"}), ("shell", {"cmd": "seq 1 2000"})),  # too long
)
RECORDED = (
    "prompt_ids",
    "prompt_mask",
    "completion_ids",
    "completion_mask",
    "tool_mask",
    "sampling_per_token_logps",
    "old_per_token_logps",
    "advantages",
)


def scripted_batch() -> dict[str, Any]:
    """Trains one step on the scripts and returns the batch, the rewards and the conversations."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
    import torch
    from datasets import Dataset
    from trl.trainer.grpo_trainer import GRPOConfig, GRPOTrainer

    from coding_gym.adapters.trl import environment_factory, prompt_rows

    class ScriptedTrainer(GRPOTrainer):  # type: ignore[misc] # Any where TRL is not installed
        """A trainer whose model plays the scripts, and which keeps its batch."""

        batch: dict[str, Any]
        turn = -1

        def _generate_single_turn(self, prompt_ids: Any, *_: Any, **__: Any) -> Any:
            self.turn += 1
            playing = list(range(len(SCRIPTS)))
            if self.turn:  # some have ended
                prompts = [tokenizer.decode(row) for row in prompt_ids]
                playing = [next(i for i in playing if name_of(i) in text) for text in prompts]
            ids = [tokenizer.encode(said(i, self.turn) + tokenizer.eos_token) for i in playing]
            return ids, [[-(1 + place % 7) / 8 for place in range(len(row))] for row in ids]

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            self.batch = super()._generate_and_score_completions(inputs)
            return self.batch

    torch.set_num_threads(1)
    tiny_qwen = import_module("tiny_qwen")
    tokenizer = tiny_qwen.train_tokenizer([topics[name] for name in sorted(topics)[:20]])
    factory = environment_factory(processing_class=tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        arguments = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=len(SCRIPTS),
            num_generations=len(SCRIPTS),
            max_steps=1,
            max_completion_length=900,
            max_tool_calling_iterations=6,
            beta=0.0,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            disable_tqdm=True,
            dataloader_pin_memory=False,
            seed=1,
        )
        trainer = ScriptedTrainer(
            model=tiny_qwen.build_model(tokenizer),
            processing_class=tokenizer,
            args=arguments,
            train_dataset=Dataset.from_list(prompt_rows(task_ids=TASK) * len(SCRIPTS)),
            environment_factory=factory,
        )
        trainer.train()
    logged = trainer._logs  # TRL has no public name for it
    value = {name: trainer.batch.get(name) for name in RECORDED}
    value = {name: v if v is None else rounded(v.tolist()) for name, v in value.items()}
    value["rewards"] = {name: list(rewards) for name, rewards in logged["rewards"].items()}
    value["completions"] = [str(completion) for completion in logged["completion"]]
    value["losses"] = rounded([e["loss"] for e in trainer.state.log_history if "loss" in e])
    value["infos"] = [dict(rollout.info) for rollout in trainer.environments]
    return value


def name_of(index: int) -> str:
    """Returns the words by which a rollout is known in its prompts."""
    return f"Rollout {index} goes on."


def said(index: int, turn: int) -> str:
    """Returns a turn of a script as the model writes it."""
    script = SCRIPTS[index]
    if turn >= len(script):
        return "Done."
    name, arguments = script[turn]
    call = json.dumps({"name": name, "arguments": arguments})
    return f"{name_of(index)}\n<tool_call>\n{call}\n</tool_call>"


def rounded(value: Any) -> Any:
    """Returns numbers without the digits that depend on the processor."""
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return round(value, 5) if isinstance(value, float) else value
