"""Teaches a language model of three million parameters to repair code, on a laptop's processor.

    cd benchmarks/learning
    python programs.py --out bench                # tasks, made once
    python small_model.py demonstrate bench/train.jsonl --out small
    python small_model.py imitate --out small     # supervised, from random weights
    python small_model.py reinforce bench/train.jsonl --out small
    python small_model.py play bench/test.jsonl --out small --model reinforced

The model reads a report, asks where the fault may be, writes a line anew, and submits. Its tokens
are those of the bundled vocabulary, its chat template is one that TRL knows, and ``reinforce`` is
GRPO with the grades of its episodes. How far it learns is not measured yet.

Needs: pip install -e '.[trl]'
"""

import argparse
import json
import re
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

from coding_gym.adapters.trl_episodes import EpisodeRollouts
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.live_episode import GeneratorPlayer
from coding_gym.agents.protocol import Agent, Play, Seat
from coding_gym.calls import ToolCall
from coding_gym.evaluation import evaluate
from coding_gym.patch import Patch
from coding_gym.rollout import RunFolder
from coding_gym.text.tokenizers import bundled_encoding
from coding_gym.tools import (
    SUBMIT,
    Refusal,
    Tool,
    ToolContext,
    Toolset,
    get_toolset,
    register_toolset,
)
from coding_gym.tools import files as workspace
from coding_gym.tools.call_arguments import text

try:
    import torch
    from datasets import Dataset
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    from transformers.convert_slow_tokenizer import bytes_to_unicode
    from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
except ImportError as missing:
    raise SystemExit(f"{missing}; run: pip install 'coding-gym[trl]'") from None

NUM_LINES = 10  # that an answer of `locate` shows
SHOWN = re.compile(r"\d\.\d\d \(.*?\)  (?P<place>\S+:\d+): (?P<code>.*)")


# Tools with short answers, since a small model reads few tokens.


def locate(_: ToolCall, context: ToolContext) -> str:
    """Answers with the lines that failing tests run and passing ones do not."""
    (tool,) = (tool for tool in get_toolset("heavy").tools if tool.name == "locate_fault")
    try:
        said = str(tool.run(ToolCall(tool.name), context))
    except Refusal as refusal:  # no test fails, for one
        return str(refusal)
    found = map(SHOWN.fullmatch, said.splitlines())
    lines = [f"{one['place']} {one['code']}" for one in found if one]
    return "\n".join(lines[:NUM_LINES]) or said[-200:]


def write_line(call: ToolCall, context: ToolContext) -> str:
    """Writes a line anew, at the indentation that it has."""
    path, _, number = text(call, "place").rpartition(":")
    file = workspace.open_file(context, path)
    lines = file.text.split("\n")
    if not number.isdecimal() or not 1 <= int(number) <= len(lines):
        raise Refusal(f"`place` must be FILE:LINE, of {len(lines)} lines")
    old = lines[int(number) - 1]
    lines[int(number) - 1] = old[: len(old) - len(old.lstrip())] + text(call, "code").strip()
    workspace.save(context, file, "\n".join(lines))
    return "written"


TOOLSET = Toolset(
    name="lines",
    system_prompt="Repair the program.",
    tools=(
        Tool(name="locate", description="Show suspicious lines.", run=locate),
        Tool(
            name="write_line",
            description="Write a line anew.",
            parameters={"place": "FILE:LINE", "code": "The line"},
            run=write_line,
        ),
        SUBMIT,
    ),
    examples=(ToolCall("locate"),),
)
EPISODE: dict[str, Any] = {"toolset": TOOLSET.name, "max_turns": 8}


# The model.


def new_tokenizer() -> PreTrainedTokenizerFast:
    """Returns the bundled vocabulary as a tokenizer of transformers, with a chat template."""
    encoding = bundled_encoding()
    ranks: dict[bytes, int] = encoding["mergeable_ranks"]
    characters = bytes_to_unicode()

    def shown(token: bytes) -> str:
        return "".join(characters[byte] for byte in token)

    def parts(token: bytes) -> list[bytes]:  # the two tokens that are merged last
        found = [token[i : i + 1] for i in range(len(token))]
        while len(found) > 2:
            pairs = (found[i] + found[i + 1] for i in range(len(found) - 1))
            _, i = min((ranks.get(pair, len(ranks)), i) for i, pair in enumerate(pairs))
            found[i : i + 2] = [found[i] + found[i + 1]]
        return found

    merges = [tuple(map(shown, parts(t))) for t in sorted(ranks, key=ranks.__getitem__) if t[1:]]
    backend = Tokenizer(models.BPE({shown(t): rank for t, rank in ranks.items()}, merges))
    split = pre_tokenizers.Split(Regex(encoding["pat_str"]), "isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([split, as_bytes])
    backend.decoder = decoders.ByteLevel()
    special = encoding["special_tokens"]
    backend.add_special_tokens(sorted(special, key=special.__getitem__))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, padding_side="left")
    tokenizer.add_special_tokens({"eos_token": "<|im_end|>", "pad_token": "<|pad|>"})
    template = files("trl").joinpath("chat_templates", "qwen2_5.jinja")
    tokenizer.chat_template = template.read_text(encoding="utf-8")
    return tokenizer


def new_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen2ForCausalLM:
    """Returns random weights: 3.1 million, two thirds of them the vocabulary's."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config)


# Demonstrations.


def gold_line(gold: Patch) -> str:
    """Returns the one line that a gold patch writes in place of another; "" for other patches."""
    lines = [line for line in gold.text.splitlines() if not line.startswith(("+++", "---"))]
    added, removed = ([line for line in lines if line.startswith(sign)] for sign in "+-")
    return added[0][1:].strip() if len(added) == len(removed) == 1 else ""


def expert(seat: Seat) -> Play:
    """Plays the gold patch where it is one line that `locate` shows; gives up elsewhere.

    Half of the time it looks again before it submits.
    """
    draws = Random(str(seat.action_space.sample()))  # noqa: S311 - no secret
    gold = Patch(seat.task.gold_patch)
    new = gold_line(gold)
    info = yield called("locate")
    removed = [line[1:].strip() for line in gold.text.splitlines() if line.startswith("-")]
    shown = [line.partition(" ") for line in info["text"].splitlines()]
    places = [place for place, _, code in shown if code == removed[-1]]
    if not new or len(places) != 1:
        return
    yield called("write_line", place=places[0], code=new)
    if draws.random() < 0.5:
        yield called("locate")
    yield called("submit")


def called(name: str, **arguments: str) -> str:
    """Returns a call as the chat template writes it."""
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"


def demonstrate(args: argparse.Namespace) -> None:
    """Has the expert play every task a few times, and keeps what is resolved."""
    tokenizer = new_tokenizer()
    new_model(tokenizer, args.seed).save_pretrained(args.out / "random")
    tokenizer.save_pretrained(args.out / "random")
    run = evaluate(
        GeneratorPlayer(Agent("expert", expert)),
        args.out / "demonstrations",
        tasks=str(args.tasks),
        episode={**EPISODE, "tokenizer": f"hf:{args.out / 'random'}"},
        attempts=args.attempts,
        concurrency=args.concurrency,
        resume=(args.out / "demonstrations").exists(),
    )
    resolved = [row.resolved for row in run.rows().values()]
    print(f"{sum(resolved)} demonstrations of {len(resolved)} attempts")


def common(args: argparse.Namespace, name: str) -> dict[str, Any]:
    """Returns the settings that both trainers share; the model is saved under the name."""
    return {
        "output_dir": str(args.out / name),
        "max_steps": args.steps,
        "use_cpu": not torch.cuda.is_available(),
        "bf16": False,
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "report_to": "none",
        "seed": args.seed,
    }


def imitate(args: argparse.Namespace) -> None:
    """Trains random weights on the demonstrations."""
    tokenizer = new_tokenizer()
    rows = []
    for trajectory in RunFolder.open(args.out / "demonstrations").trajectories():
        if trajectory.resolved:
            example = trajectory.to_training_example(include_inexact=True)
            ids = [*example["completion_ids"], tokenizer.eos_token_id]
            mask = [*example["env_mask"], 1]
            labels = [token if is_own else -100 for token, is_own in zip(ids, mask, strict=True)]
            prompt = example["prompt_ids"]
            rows.append({"input_ids": prompt + ids, "labels": [-100] * len(prompt) + labels})
    config = SFTConfig(
        **common(args, "imitated"),
        per_device_train_batch_size=16,
        learning_rate=2e-3,
        lr_scheduler_type="cosine",
        warmup_steps=50,
        max_length=None,
        logging_steps=25,
    )
    trainer = SFTTrainer(
        new_model(tokenizer, args.seed),
        args=config,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rows),
    )
    trainer.train()
    trainer.save_model()


def reinforce(args: argparse.Namespace) -> None:
    """Goes on with GRPO, whose rewards are the grades of episodes."""
    tokenizer = new_tokenizer()
    rollouts = EpisodeRollouts(tokenizer, tasks=str(args.tasks), seed=args.seed, **EPISODE)
    config = GRPOConfig(
        **common(args, "reinforced"),
        per_device_train_batch_size=args.batch,
        num_generations=args.group,
        max_completion_length=160,
        learning_rate=3e-4,
        beta=0.0,
        logging_steps=1,
    )
    trainer = GRPOTrainer(
        Qwen2ForCausalLM.from_pretrained(args.out / "imitated"),
        args=config,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rollouts.rows()),
        rollout_func=rollouts,
        reward_funcs=rollouts.reward,
    )
    trainer.train()
    trainer.save_model()


def play(args: argparse.Namespace) -> None:
    """Plays every task once with one of the models, and says how many it resolves."""
    run = evaluate(
        HuggingFaceAgent(str(args.out / args.model)),
        args.out / f"played-{args.model}",
        tasks=str(args.tasks),
        episode={**EPISODE, "tokenizer": f"hf:{args.out / args.model}"},
        attempts=args.attempts,
        concurrency=args.concurrency,
        resume=(args.out / f"played-{args.model}").exists(),
    )
    resolved = [row.resolved for row in run.rows().values()]
    print(f"{args.model}: {sum(resolved)} of {len(resolved)} resolved")


def main() -> None:
    """Runs one part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=("demonstrate", "imitate", "reinforce", "play"))
    parser.add_argument("tasks", nargs="?", type=Path, help="a JSONL file; not for imitate")
    parser.add_argument("--out", type=Path, default=Path("small"), help="the folder of all models")
    parser.add_argument("--model", default="imitated", help="which to play (default imitated)")
    parser.add_argument("--steps", type=int, default=300, help="updates (default 300)")
    parser.add_argument("--attempts", type=int, default=2, help="at each task (default 2)")
    parser.add_argument("--concurrency", type=int, default=8, help="episodes (default 8)")
    parser.add_argument("--batch", type=int, default=32, help="rollouts of an update (default 32)")
    parser.add_argument("--group", type=int, default=8, help="of one task (default 8)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.out = args.out.absolute()
    register_toolset(TOOLSET)
    globals()[args.part](args)


if __name__ == "__main__":
    main()
