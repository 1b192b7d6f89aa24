"""What an update of GRPO takes for real models: random weights of their shapes, random tokens.

    python benchmarks/learning/recipes.py Qwen3-4B                         # LoRA, on a GPU
    python benchmarks/learning/recipes.py SmolLM2-135M --full              # all weights
    python benchmarks/learning/recipes.py SmolLM2-135M --tokens 256 --group 2    # here, on a CPU

Groups of 8, trajectories of 8,192 tokens, a cosine from 1e-5 and beta 0.1 are the settings that the
thesis behind CodeRepairRL names; LoRA of rank 16 on all linear layers and one group in a batch are
ours, where it has four. Memory and time of an update depend on shapes alone, so neither trained
weights nor sandboxes are needed. Two updates run, and the second one is measured: ``update_s`` has
no generation and no episodes in it. With ``--full`` the weights are in float32, under an autocast
to bfloat16.

Needs: pip install -e '.[trl]'
"""

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

try:
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from tokenizers import Tokenizer, models
    from transformers import (
        AutoModelForCausalLM,
        LlamaConfig,
        PreTrainedTokenizerFast,
        Qwen3Config,
        TrainerCallback,
    )
    from trl import GRPOConfig, GRPOTrainer
except ImportError as missing:
    raise SystemExit(f"{missing}; run: pip install -e '.[trl]'") from None

RESULTS = Path(__file__).parents[1] / "results" / "recipes.jsonl"
_QWEN3: Mapping[str, Any] = {
    "vocab_size": 151_936,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40_960,
}
# As in the models' own config.json.
SHAPES = {
    "SmolLM2-135M": LlamaConfig(
        vocab_size=49_152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    ),
    "Qwen3-0.6B": Qwen3Config(
        **_QWEN3,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        tie_word_embeddings=True,
    ),
    "Qwen3-4B": Qwen3Config(
        **_QWEN3,
        hidden_size=2560,
        intermediate_size=9728,
        num_hidden_layers=36,
        num_attention_heads=32,
        tie_word_embeddings=True,
    ),
    "Qwen3-8B": Qwen3Config(
        **_QWEN3,
        hidden_size=4096,
        intermediate_size=12_288,
        num_hidden_layers=36,
        num_attention_heads=32,
        tie_word_embeddings=False,
    ),
}
LORA = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
WORDS = {"a": 0, "bug": 1, "<end>": 2, "<pad>": 3}  # no text matters here
PROMPT_SHARE = 8  # one token in so many is the prompt's


class _Clock(TrainerCallback):
    """Notes when the tokens of a batch were there, and when its update was done."""

    def __init__(self) -> None:
        self.begun = 0.0
        self.updates_s: list[float] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.updates_s.append(time.perf_counter() - self.begun)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Runs two updates, and returns what the second one took."""
    is_gpu, shape, clock = torch.cuda.is_available(), SHAPES[args.model], _Clock()
    words = Tokenizer(models.WordLevel(WORDS, "a"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, padding_side="left")
    tokenizer.add_special_tokens({"eos_token": "<end>", "pad_token": "<pad>"})
    dtype = torch.bfloat16 if is_gpu and not args.full else torch.float32
    num_prompt = args.tokens // PROMPT_SHARE
    draws = torch.Generator().manual_seed(0)

    def drawn(size: int) -> list[int]:
        found: list[int] = torch.randint(
            len(WORDS), shape.vocab_size, (size,), generator=draws
        ).tolist()
        return found

    def rollouts(prompts: Sequence[Any], _: Any) -> dict[str, Any]:
        one, rest = drawn(num_prompt), args.tokens - num_prompt
        found = {
            "prompt_ids": [one for _ in prompts],
            "completion_ids": [drawn(rest) for _ in prompts],
            # Of an episode's tokens about half are answers of tools.
            "env_mask": [[number // 64 % 2 for number in range(rest)] for _ in prompts],
            "logprobs": None,
        }
        clock.begun = time.perf_counter()
        return found

    def reward(completions: Sequence[Any], **_: Any) -> list[float]:
        return [float(number % 2) for number in range(len(completions))]

    with tempfile.TemporaryDirectory() as folder:
        model: Any = f"{folder}/weights"
        if args.full:  # TRL loads it from there, twice: one is the reference
            AutoModelForCausalLM.from_config(shape, dtype=dtype).save_pretrained(model)
        else:
            with torch.device("cuda" if is_gpu else "cpu"):
                model = AutoModelForCausalLM.from_config(shape, dtype=dtype)
        config = GRPOConfig(
            output_dir=folder,
            max_steps=2,
            per_device_train_batch_size=1,
            gradient_accumulation_steps=args.batch,
            num_generations=args.group,
            max_completion_length=args.tokens,
            learning_rate=1e-5,
            lr_scheduler_type="cosine",
            beta=args.beta,
            bf16=is_gpu,
            use_cpu=not is_gpu,
            gradient_checkpointing=True,
            save_strategy="no",
            report_to="none",
            logging_steps=1,
            model_init_kwargs={"dtype": "float32"} if args.full else None,
        )
        trainer = GRPOTrainer(
            model,
            args=config,
            processing_class=tokenizer,
            train_dataset=Dataset.from_list([{"prompt": "a bug"}] * args.batch),
            rollout_func=rollouts,
            reward_funcs=reward,
            peft_config=None if args.full else LORA,
            callbacks=[clock],
        )
        trainer.train()
    return {
        "model": args.model,
        "weights": "all" if args.full else "lora",
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "trained": sum(p.numel() for p in trainer.model.parameters() if p.requires_grad),
        "tokens": args.tokens,
        "trajectories": args.batch,
        "group": args.group,
        "beta": args.beta,
        "update_s": round(clock.updates_s[-1], 2),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 1) if is_gpu else None,
        "device": torch.cuda.get_device_name() if is_gpu else platform.processor() or "cpu",
        "dtype": str(dtype),
        "torch": torch.__version__,
        "trl": version("trl"),
    }


def main() -> None:
    """Measures one recipe."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", choices=SHAPES)
    parser.add_argument("--full", action="store_true", help="train all weights, not a LoRA")
    parser.add_argument("--tokens", type=int, default=8192, help="of a trajectory (default 8192)")
    parser.add_argument("--group", type=int, default=8, help="attempts at a task (default 8)")
    parser.add_argument("--batch", type=int, default=8, help="trajectories (default 8)")
    parser.add_argument("--beta", type=float, default=0.1, help="of the KL term (default 0.1)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="a file for the line of results")
    args = parser.parse_args()
    if args.batch % args.group:
        parser.error("--batch must be a multiple of --group")
    line = json.dumps(measure(args))
    with args.out.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    print(line)


if __name__ == "__main__":
    main()
