"""Trains a language model with TRL's GRPO to repair the bundled programs.

    python examples/train_trl.py --model Qwen/Qwen3-0.6B --steps 100
    python examples/train_trl.py --model Qwen/Qwen3-8B --lora --vllm http://localhost:8000
    python examples/train_trl.py --model HuggingFaceTB/SmolLM2-135M-Instruct --tool-format json
    python examples/train_trl.py --model Qwen/Qwen3-0.6B --harness nano-agent --max-tokens 1024
    python examples/train_trl.py --tiny --steps 1    # offline, on a CPU, learns nothing

``--tool-format`` is for models whose chat template does not support tools: the system prompt
explains the tools, and the environment reads the calls from the text. ``--harness`` trains the
model of a command-line agent in the sandbox; ``--max-tokens`` then limits one reply. Neither
``--tool-format`` nor ``--harness`` can be combined with ``--vllm``. ``--lora`` trains with the
settings of the thesis on CodeRepairRL: groups of 8, a KL term (``beta`` 0.1), and a cosine schedule
of the learning rate that begins at 1e-5. With ``--vllm`` a server of ``trl vllm-serve`` generates;
TRL sends the new weights to the server after each update. With ``--vllm colocate`` vLLM runs in
this process, on the same GPU, and frees its memory during updates.

Needs: pip install -e '.[trl]', and for ``--vllm`` also pip install 'trl[vllm]'
"""

import argparse
from importlib.resources import files
from tempfile import TemporaryDirectory
from typing import Any

from coding_gym import load_tasks
from coding_gym.adapters.trl import environment_factory, prompt_rows
from coding_gym.adapters.trl_episodes import EpisodeRollouts
from coding_gym.agents.harness import get_harness

try:
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import supports_tool_calling
except ImportError as error:
    raise SystemExit(f"{error}; run: pip install -e '.[trl]'") from None


MAX_PROMPT = 4096  # tokens of the system prompt, the tools and the issue
LORA = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")


def tiny_model() -> tuple[Any, Any]:
    """Returns a random model and a byte tokenizer, to test the whole script."""
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
    """Returns the checked arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--model", default="Qwen/Qwen3-0.6B", help="a folder or a hub name")
    parser.add_argument("--tiny", action="store_true", help="a random model, not saved")
    parser.add_argument("--steps", type=int, default=100, help="updates, each of one group")
    parser.add_argument("--group", type=int, default=8, help="rollouts per task")
    parser.add_argument("--max-tokens", type=int, default=8192, help="maximum tokens of a rollout")
    parser.add_argument("--max-turns", type=int, default=30, help="maximum turns of a rollout")
    parser.add_argument("--lora", action="store_true", help="train adapters of rank 16")
    parser.add_argument(
        "--vllm", metavar="URL", help="address of trl vllm-serve, or colocate (in this process)"
    )
    parser.add_argument(
        "--vllm-memory", type=float, default=0.3, help="fraction of the GPU's memory for colocate"
    )
    parser.add_argument("--tool-format", help="read calls from the text, in this format")
    parser.add_argument("--harness", help="a preset or a TOML file of a command-line agent")
    parser.add_argument("--out", help="folder of the model; trl-output without --tiny")
    arguments = parser.parse_args()
    if arguments.steps < 1 or arguments.group < 2:
        parser.error("--steps must be at least 1, --group at least 2")
    if not arguments.tiny:
        arguments.out = arguments.out or "trl-output"
    return arguments


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """Returns TRL's settings of the trained weights (all, or LoRA) and of text generation."""
    # One trajectory at a time, because the memory of a GPU is limited.
    options: dict[str, Any] = {"per_device_train_batch_size": 1}
    options |= {"gradient_accumulation_steps": args.group}
    if args.lora:
        options |= {"learning_rate": 1e-5, "lr_scheduler_type": "cosine", "beta": 0.1}
    if args.vllm == "colocate":
        options |= {"use_vllm": True, "vllm_mode": "colocate", "vllm_enable_sleep_mode": True}
        options |= {"vllm_gpu_memory_utilization": args.vllm_memory}
        options |= {"vllm_max_model_length": args.max_tokens + MAX_PROMPT}
    elif args.vllm:
        options |= {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": args.vllm}
    return options


def rollouts(args: argparse.Namespace, tokenizer: Any) -> dict[str, Any]:
    """Returns the trainer's arguments that provide the rows and play the episodes."""
    if args.tool_format or args.harness:
        episodes = EpisodeRollouts(
            tokenizer,
            harness=get_harness(args.harness) if args.harness else None,
            split="train",
            tool_format=args.tool_format or "auto",
            max_turns=args.max_turns,
        )
        rows, reward = Dataset.from_list(episodes.rows()), episodes.reward
        return {"train_dataset": rows, "rollout_func": episodes, "reward_funcs": reward}
    if not supports_tool_calling(tokenizer):
        raise SystemExit(
            f"the chat template of {args.model} does not render tool calls and their results; add "
            "--tool-format json, or choose a model whose template has tools"
        )
    factory = environment_factory(processing_class=tokenizer, max_turns=args.max_turns)
    rows = Dataset.from_list(prompt_rows(split="train"))
    return {"train_dataset": rows, "environment_factory": factory}


def train(args: argparse.Namespace, folder: str) -> None:
    """Trains by GRPO; TRL writes to ``folder``."""
    num_tasks = len(load_tasks(split="train"))
    print(f"GRPO on {num_tasks} tasks, {args.steps} steps of {args.group} rollouts", flush=True)
    if args.tiny:
        print("the tiny model is random and calls no tool: a reward of 0 is expected", flush=True)
        model, tokenizer = tiny_model()
    else:
        model, tokenizer = args.model, AutoTokenizer.from_pretrained(args.model)

    config = GRPOConfig(
        output_dir=folder,
        max_steps=args.steps,
        num_generations=args.group,
        max_completion_length=args.max_tokens,
        use_cpu=not torch.cuda.is_available(),
        bf16=torch.cuda.is_available(),
        logging_steps=1,
        save_strategy="steps" if args.out else "no",
        report_to="none",
        **settings(args),
    )
    trainer = GRPOTrainer(
        model,
        args=config,
        processing_class=tokenizer,
        peft_config=LORA if args.lora else None,
        **rollouts(args, tokenizer),
    )
    trainer.train()
    saved = f"saved to {args.out}/checkpoint-{args.steps}" if args.out else "not saved"
    print(f"done: {args.steps} steps, {saved}", flush=True)


def main() -> None:
    """Reads the command line and trains."""
    args = read_arguments()
    with TemporaryDirectory() as scratch:  # TRL creates a folder even if it saves nothing
        train(args, args.out or scratch)


if __name__ == "__main__":
    main()
