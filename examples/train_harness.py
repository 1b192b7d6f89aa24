"""Trains a language model with TRL's GRPO as the model of a command-line agent in the sandbox.

    python examples/train_harness.py --model Qwen/Qwen3-0.6B --steps 100
    python examples/train_harness.py --tiny --steps 1    # offline, on a CPU, learns nothing

Needs: pip install -e '.[trl]'
"""

import argparse
from tempfile import TemporaryDirectory

from coding_gym.adapters.trl_episodes import EpisodeRollouts
from coding_gym.agents.harness import get_harness
from coding_gym.tasks import load_tasks

try:
    import torch
    from datasets import Dataset
    from train_trl import tiny_model
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer
except ImportError as missing:
    raise SystemExit(f"{missing}; run: pip install -e '.[trl]'") from None


def main() -> None:
    """Reads the command line and trains."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="Qwen/Qwen3-0.6B", help="a folder or a hub name")
    parser.add_argument("--harness", default="nano-agent", help="a preset or a TOML file")
    parser.add_argument("--tiny", action="store_true", help="a random model, not saved")
    parser.add_argument("--steps", type=int, default=100, help="updates, each from one group")
    parser.add_argument("--group", type=int, default=8, help="episodes per task")
    parser.add_argument("--reply-tokens", type=int, default=1024, help="the most of one reply")
    args = parser.parse_args()
    if args.tiny:
        model, tokenizer = tiny_model()
    else:
        model, tokenizer = args.model, AutoTokenizer.from_pretrained(args.model)
    tasks = load_tasks("bundled", split="train")
    harness = get_harness(args.harness)
    rollouts = EpisodeRollouts(tokenizer, harness=harness, tasks=tasks, max_turns=12)
    with TemporaryDirectory() as scratch:
        config = GRPOConfig(
            output_dir=scratch if args.tiny else "trl-output",
            max_steps=args.steps,
            per_device_train_batch_size=args.group,
            num_generations=args.group,
            max_completion_length=args.reply_tokens,
            use_cpu=not torch.cuda.is_available(),
            bf16=torch.cuda.is_available(),
            logging_steps=1,
            save_strategy="no" if args.tiny else "steps",
            report_to="none",
        )
        GRPOTrainer(
            model,
            args=config,
            processing_class=tokenizer,
            train_dataset=Dataset.from_list(rollouts.rows()),
            rollout_func=rollouts,
            reward_funcs=rollouts.reward,
        ).train()


if __name__ == "__main__":
    main()
