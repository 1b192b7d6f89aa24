"""The questions of the thesis behind CodeRepairRL, asked of the small language model.

    python benchmarks/learning/experiments.py bench --known bench/known.pickle    # hours
    python benchmarks/learning/experiments.py --report     # table
    python benchmarks/learning/experiments.py --dry-run    # of what a real model would do

Each condition changes one setting of `language_model.py`; the tasks, the seeds and all other
settings are those of its own runs, which `learn.py` keeps:

- Does a reward for patches that resemble the gold patch help, beside the sparse one?
- How long should episodes be?
- Does GRPO learn anything without imitation?
- And after imitating an expert that tries edits until one passes?

Two questions are beyond that model: the toolsets ``nano`` and ``heavy``, and whether what is
learned on Python carries over to Java. It writes three calls with a number in them, and the list of
edits is of Python alone. For these, ``--dry-run`` plays two episodes and learns from them with a
model of SmolLM2-135M's shape and random weights, on bundled tasks: what is shown is that the
settings run, and the reward is 0.

Needs: pip install -e '.[trl]'
"""

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import learn
from menu_episodes import Outcomes, difference, rate

from coding_gym.process_cache import load_results

RESULTS = learn.RESULTS.with_name("experiments.jsonl")
CONDITIONS: Mapping[str, Mapping[str, Any]] = {
    "similarity": {"similarity": 0.3},
    "short episodes": {"max_turns": 4},
    "long episodes": {"max_turns": 12},
    "no imitation": {"imitated": 0},
    "patient expert": {"gives_up": 0.0},
}
DRY_RUNS: Mapping[str, Mapping[str, Any]] = {
    "nano": {"tasks": "bundled", "toolset": "nano"},
    "heavy": {"tasks": "bundled", "toolset": "heavy"},
    "Java": {"tasks": "polyglot", "toolset": "nano"},
}


def run(bench: Path, options: argparse.Namespace) -> None:
    """Trains with each condition and seed; adds a line to the results as each is there."""
    train, test = (learn.subset(bench, split, options.each) for split in learn.SPLITS)
    load_results(options.known, learn.commit())
    common = {"imitated": options.imitated, "reinforced": options.reinforced}
    calls = [
        (train, test, condition, seed, {**common, **CONDITIONS[condition]})
        for condition in options.conditions
        for seed in options.seeds
    ]
    learn.in_forks(_train, calls, options.at_once)


def _train(train: Path, test: Path, condition: str, seed: int, settings: Mapping[str, Any]) -> None:
    result = learn.run_seed(train, test, "language_model", seed, settings)
    for episodes in result["played"].values():
        for episode in episodes:
            del episode["patch"]  # it quotes the programs
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"condition": condition, **result}) + "\n")


def report() -> None:
    """Prints what each condition resolves on programs never seen, beside the same usual seeds."""
    runs: dict[tuple[str, int], Mapping[str, Any]] = {}
    for path in (learn.RESULTS, RESULTS):
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if line["trainer"] == "language_model":
                runs[line.get("condition", "usual"), line["seed"]] = line
    head = f"{'resolved, %':<18}{'imitated':<24}{'after GRPO':<24}{'above usual, points':<24}"
    print(f"{head}seeds  distinct patches  groups with variance  entropy")
    for condition in dict.fromkeys(condition for condition, _ in runs):
        seeds = [seed for name, seed in runs if name == condition]
        found = [runs[condition, seed] for seed in seeds]
        last = [part for one in found for part in one["curve"][-10:]]
        means = [
            sum(part[name] for part in last) / len(last)
            for name in ("distinct_patches", "groups_with_variance", "entropy")
        ]
        sampled = _outcomes(found, "sampled")
        imitated = _outcomes(found, "imitated")
        before = learn.formatted(rate(imitated)) if imitated else ""
        usual = _outcomes([runs["usual", seed] for seed in seeds], "sampled")
        more = "" if condition == "usual" else learn.formatted(difference(sampled, usual))
        print(
            f"{condition:<18}{before:<24}{learn.formatted(rate(sampled)):<24}{more:<24}"
            f"{len(found):<7}{means[0]:<18.2f}{means[1]:<22.2f}{means[2]:.3f}"
        )


def _outcomes(runs: Sequence[Mapping[str, Any]], policy: str) -> Outcomes:
    return learn.by_task([one for run in runs for one in run["played"].get(policy, ())])


def dry_run() -> None:
    """Plays one group of episodes with each setting, and learns from it, on random weights."""
    import recipes
    import torch
    from datasets import Dataset
    from language_model import new_tokenizer
    from transformers import AutoModelForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    from coding_gym.adapters.trl_episodes import EpisodeRollouts

    tokenizer = new_tokenizer()
    shape = recipes.SHAPES["SmolLM2-135M"]
    shape.vocab_size = len(tokenizer)
    for name, episode in DRY_RUNS.items():
        torch.manual_seed(0)
        rollouts = EpisodeRollouts(tokenizer, **episode, max_turns=2)
        with tempfile.TemporaryDirectory() as folder:
            config = GRPOConfig(
                output_dir=folder,
                max_steps=1,
                per_device_train_batch_size=1,
                gradient_accumulation_steps=2,
                num_generations=2,
                max_completion_length=16,
                learning_rate=1e-5,
                lr_scheduler_type="cosine",
                beta=0.1,
                use_cpu=not torch.cuda.is_available(),
                bf16=torch.cuda.is_available(),
                save_strategy="no",
                report_to="none",
                logging_steps=1,
                disable_tqdm=True,
            )
            trainer = GRPOTrainer(
                AutoModelForCausalLM.from_config(shape),
                args=config,
                processing_class=tokenizer,
                train_dataset=Dataset.from_list(rollouts.rows()[-1:] * 2),
                rollout_func=rollouts,
                reward_funcs=rollouts.reward,
                peft_config=recipes.LORA,
            )
            trainer.train()
        logged = trainer.state.log_history[0]
        print(f"{name}: reward {logged['reward']:.2f}, loss {logged['loss']:.4f}", flush=True)


def main() -> None:
    """Runs the experiments, the dry runs, or prints the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bench", type=Path, nargs="?", help="the folder of programs.py")
    parser.add_argument(
        "--known", type=Path, help="what learn.py explored, with the same tasks and code"
    )
    parser.add_argument(
        "--conditions", nargs="*", choices=CONDITIONS, default=list(CONDITIONS), help="(all)"
    )
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2], help="(default 0 1 2)")
    parser.add_argument("--imitated", type=int, default=240, help="updates (default 240)")
    parser.add_argument("--reinforced", type=int, default=20, help="of GRPO (default 20)")
    parser.add_argument("--each", type=int, default=10, help="tasks per program (default 10)")
    parser.add_argument("--at-once", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--dry-run", action="store_true", help="real models' shapes")
    parser.add_argument("--report", action="store_true", help="print the results so far")
    options = parser.parse_args()
    if options.dry_run:
        dry_run()
    elif options.report:
        report()
    elif options.bench is None or options.known is None:
        parser.error("name the folder of the bench and --known, or --report, or --dry-run")
    else:
        run(options.bench, options)
        report()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in learn.py
    main()
