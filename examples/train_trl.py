"""Trains a language model with TRL's GRPO to repair the bundled programs.

    python examples/train_trl.py --model Qwen/Qwen3-0.6B --steps 100
    python examples/train_trl.py --tiny --steps 1    # offline, on a CPU, learns nothing

Needs: pip install -e '.[trl]'
"""

import argparse
from importlib.resources import files
from tempfile import TemporaryDirectory
from typing import Any

from coding_gym.adapters.trl import environment_factory, prompt_rows

try:
    import torch
    from datasets import Dataset
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    from trl import GRPOConfig, GRPOTrainer
except ImportError as missing:
    raise SystemExit(f"{missing}; run: pip install 'coding-gym[trl]'") from None


def tiny_model() -> tuple[Any, Any]:
    """Returns a random model and a tokenizer of bytes, to see that everything runs."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    tokenizer.add_special_tokens({"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"})
    template = files("trl").joinpath("chat_templates", "qwen2_5.jinja")
    tokenizer.chat_template = template.read_text(encoding="utf-8")
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    return Qwen2ForCausalLM(config), tokenizer


def read_arguments() -> argparse.Namespace:
    """Returns what the command line says, checked."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--model", default="Qwen/Qwen3-0.6B", help="a folder or a hub name")
    parser.add_argument("--tiny", action="store_true", help="a random model, not saved")
    parser.add_argument("--steps", type=int, default=100, help="updates, each from one group")
    parser.add_argument("--group", type=int, default=8, help="rollouts per task")
    parser.add_argument("--max-tokens", type=int, default=8192, help="replies and tool results")
    parser.add_argument("--max-turns", type=int, default=30, help="tool calls per rollout")
    parser.add_argument("--server", help="address of an OpenEnv server that has the sandboxes")
    parser.add_argument("--out", help="folder of the trained model; trl-output if not --tiny")
    arguments = parser.parse_args()
    if arguments.steps < 1 or arguments.group < 2:
        parser.error("--steps must be at least 1, --group at least 2")
    if not arguments.tiny:
        arguments.out = arguments.out or "trl-output"
    return arguments


def environments(args: argparse.Namespace, tokenizer: Any) -> Any:
    """Returns what makes the environments, here or on a server."""
    if args.server is None:
        return environment_factory(processing_class=tokenizer, max_turns=args.max_turns)
    from coding_gym.adapters.openenv_client import remote_factory

    return remote_factory(args.server)


def train(args: argparse.Namespace, folder: str) -> None:
    """Trains; ``folder`` is where TRL writes."""
    rows = prompt_rows(split="train")
    print(f"GRPO on {len(rows)} tasks, {args.steps} steps of {args.group} rollouts", flush=True)
    if args.tiny:
        print("the tiny model is random and calls no tool: a reward of 0 is expected", flush=True)
        model, tokenizer = tiny_model()
    else:
        model, tokenizer = args.model, AutoTokenizer.from_pretrained(args.model)

    config = GRPOConfig(
        output_dir=folder,
        max_steps=args.steps,
        per_device_train_batch_size=args.group,
        num_generations=args.group,
        max_completion_length=args.max_tokens,
        use_cpu=not torch.cuda.is_available(),
        bf16=torch.cuda.is_available(),
        logging_steps=1,
        save_strategy="steps" if args.out else "no",
        report_to="none",
    )
    trainer = GRPOTrainer(
        model,
        args=config,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rows),
        environment_factory=environments(args, tokenizer),
    )
    trainer.train()
    saved = f"saved to {args.out}/checkpoint-{args.steps}" if args.out else "not saved"
    print(f"done: {args.steps} steps, {saved}", flush=True)


def main() -> None:
    """Reads the command line and trains."""
    args = read_arguments()
    with TemporaryDirectory() as scratch:  # TRL makes a folder also where it saves nothing
        train(args, args.out or scratch)


if __name__ == "__main__":
    main()
