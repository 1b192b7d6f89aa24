r"""Trains SmolLM2-135M on a CPU to repair one-line bugs: demonstrations, SFT, GRPO, a report.

    pip install -e '.[hf]' torch accelerate gguf
    python benchmarks/learning/programs.py bench          # the bugs, in a few minutes
    python examples/train_real_model.py --bench bench     # everything, in one to three hours

A trial of all stages takes about 12 minutes of processor time; its model repairs almost nothing:

    python examples/train_real_model.py --bench bench --sft-steps 20 --grpo-steps 5 --held-out 1

A completed stage is skipped; a killed stage starts again. To run only some stages, name them:
``demos``, ``sft``, ``grpo``, ``report``. Half of the programs are held out.

On a CPU the time of an episode grows with its tokens, so episodes are as short as possible. The
issue displays six numbered lines, of which one is faulty. The reply is one call of the tool
``edit`` of the toolset ``compact``, which replaces a few words of a line; then the patch is graded.
Demonstrations repair bugs that the mutation operators make in Python's standard library; SFT uses
each demonstration once. All weights are trained, in float32 under bfloat16 autocast.
"""

import argparse
import hashlib
import json
import random
import re
import shutil
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from coding_gym import load_tasks
from coding_gym.adapters.samples import training_example
from coding_gym.agents.chat import Sampling
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.evaluation import evaluate
from coding_gym.evaluation.statistics import paired_difference
from coding_gym.evaluation.tables import cells, markdown_table, percent
from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.mutation.source import Source
from coding_gym.patch import Patch
from coding_gym.rewards import line_similarity
from coding_gym.synthesis.mutants import find_mutants, in_turn
from coding_gym.tasks.sources.reversal import reversed_patch
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import system_prompt
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.workspace import TemplateStore

try:
    import torch
    from real_model import default_folder, make_model
    from transformers import AutoModelForCausalLM, AutoTokenizer
except ImportError as error:
    raise SystemExit(f"{error}; run: pip install -e '.[hf]' torch accelerate gguf") from None

STAGES = ("demos", "sft", "grpo", "report")
NUM_LINES = 6
MAX_CHARS = 90  # maximum length of a line to repair
MUTANTS_PER_FILE = 10
WORD = re.compile(r"\w+|[^\w\s]+|\s")
NOT_LIBRARY = re.compile("test|site-packages|dist-packages|idlelib|lib2to3|turtledemo")
TOOL_FORMAT = "pythonic"
BATCH = 8  # demonstrations in an update of SFT
GROUPS, ATTEMPTS = 4, 8  # tasks in an update of GRPO, and episodes of each
SAMPLING = Sampling(temperature=1.0, top_p=1.0, top_k=0, max_tokens=48)


def digest(name: str) -> int:
    """Returns a pseudo-random number for a name, the same in every run."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def statement(path: str, text: str, number: int, key: str) -> str:
    """Returns an issue that displays lines of a file, the faulty one at a random position."""
    first = max(1, number - digest(key) % NUM_LINES)
    lines = text.split("\n")[first - 1 : first - 1 + NUM_LINES]
    excerpt = "\n".join(f"{n} {line}" for n, line in enumerate(lines, first))
    return f"One of these lines of {path} is wrong:\n{excerpt}\n"


def one_line(broken: str, fixed: str) -> tuple[int, str, str] | None:
    """Returns number, text and repair of the faulty line; None for a long line or several lines."""
    before, after = broken.split("\n"), fixed.split("\n")
    if len(before) != len(after):
        return None
    pairs = enumerate(zip(before, after, strict=True), 1)
    change, *other_changes = [(n, old, new) for n, (old, new) in pairs if old != new]
    is_usable = change[1].strip() and max(map(len, change[1:])) <= MAX_CHARS
    return change if is_usable and not other_changes else None


def num_equal(left: Sequence[str], right: Sequence[str]) -> int:
    """Returns the number of equal items at the start of two sequences."""
    differences = (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b)
    return next(differences, min(len(left), len(right)))


def edit(path: str, number: int, line: str, repaired: str) -> dict[str, Any]:
    """Returns the arguments of ``edit`` that repair a line, with as few words as possible."""
    old, new = WORD.findall(line), WORD.findall(repaired)
    start = num_equal(old, new)
    num_after = num_equal(old[start:][::-1], new[start:][::-1])
    end, new_end = len(old) - num_after, len(new) - num_after
    text = "".join(old[start:end])
    while not text.strip() or line.find(text) != len("".join(old[:start])):
        if start:
            start -= 1
        else:
            end, new_end = end + 1, new_end + 1
        text = "".join(old[start:end])
    return {"path": path, "line": number, "old": text, "new": "".join(new[start:new_end])}


def write_tasks(bench: Path, work: Path, num_held_out: int = 8) -> None:
    """Writes the tasks whose bug is in one line, held-out programs to another file."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for split in (bench / "train.jsonl", bench / "test.jsonl"):
        for row in map(json.loads, split.read_text(encoding="utf-8").splitlines()):
            (path,), tree = Patch(row["patch"]).paths, (bench / row["folder"]).resolve()
            fixed = (tree / path).read_text(encoding="utf-8")
            broken = reversed_patch(Patch(row["patch"])).files[0].apply(fixed)
            if change := one_line(broken, fixed):
                report = statement(path, broken, change[0], row["instance_id"])
                row |= {"folder": str(tree), "problem_statement": report}
                rows.setdefault(row["repo"], []).append(row)
    names = sorted(rows, key=digest)
    held_out_repos, other_repos = names[: len(names) // 2], names[len(names) // 2 :]
    for name, repos, limit in (("test", held_out_repos, num_held_out), ("grpo", other_repos, None)):
        text = "".join(f"{json.dumps(row)}\n" for repo in repos for row in rows[repo][:limit])
        (work / f"{name}.jsonl").write_text(text, encoding="utf-8")


def demonstrations(seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields issues about bugs in Python's standard library, each with the repairing call.

    These bugs are not confirmed by tests. The standard library contains no program of the bench.
    """
    library, rng = Path(sysconfig.get_path("stdlib")), random.Random(seed)  # noqa: S311
    files = [path.relative_to(library).as_posix() for path in sorted(library.rglob("*.py"))]
    files = [name for name in files if not NOT_LIBRARY.search(name)]
    rng.shuffle(files)
    for name in files:
        source = Source.from_bytes(name, (library / name).read_bytes())
        mutants = in_turn(find_mutants(source, lambda _: True), rng) if source else iter(())
        for mutant in islice(mutants, MUTANTS_PER_FILE):
            if change := one_line(mutant.text, mutant.source):
                key = f"{name}{mutant.change.edits}"
                yield statement(name, mutant.text, change[0], key), edit(name, *change)


def demonstration(report: str, reply: str, tokenizer: str) -> dict[str, Any]:
    """Returns the training example of an episode with one reply; no episode is played."""
    toolset = get_toolset("compact")
    system = system_prompt(toolset, TOOL_FORMAT)
    contents = {"system": system, "user": report, "assistant": reply}
    ids = get_tokenizer(tokenizer).encode(reply)
    record = Trajectory(
        task_id="demonstration",
        messages=tuple({"role": role, "content": text} for role, text in contents.items()),
        tools=tuple(map(dict, toolset.schemas)),
        turns=(Turn(action=reply, token_ids=tuple(ids)),),
        tokenizer=tokenizer,
        settings={"tool_format": TOOL_FORMAT},
    )
    return training_example(record, include_inexact=True)


def load(folder: str | Path, dtype: torch.dtype) -> Any:
    """Loads the model of a folder."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)


def learn(model: Any, examples: Sequence[dict[str, Any]], weights: Sequence[float]) -> float:
    """Adds the gradient of the loss of episodes to the model's gradient, and returns the loss.

    The loss is the mean of -weight * log p over all ids that were sampled or demonstrated. The
    model processes the common prefix of the prompts once, and all rows share its keys and values.
    This prefix is the system prompt with the tools, or the whole prompt for episodes of one task.
    """
    sequences = [[*example["prompt_ids"], *example["completion_ids"]] for example in examples]
    prompts = [example["prompt_ids"] for example in examples]
    columns = [len(set(column)) == 1 for column in zip(*prompts, strict=False)]
    num_shared = [*columns[:-1], False].index(False)
    width = max(map(len, sequences))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in sequences])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in sequences])
    is_trained = torch.zeros_like(ids, dtype=torch.bool)
    for row, example in enumerate(examples):
        end, flags = len(sequences[row]), torch.tensor(example["env_mask"]).bool()
        is_trained[row, end - len(flags) : end] = flags
    is_trained = is_trained[:, num_shared + 1 :]
    with torch.autocast("cpu", torch.bfloat16):
        start = model.base_model(input_ids=ids[:1, :num_shared], use_cache=True)
        name = "cache" if "cache" in start else "past_key_values"  # transformers before 5.24
        start[name].batch_repeat_interleave(len(examples))
        suffix = {"input_ids": ids[:, num_shared:], "attention_mask": mask, name: start[name]}
        output = model.base_model(**suffix)
        logits = model.lm_head(output.last_hidden_state[:, :-1][is_trained])
    labels = ids[:, num_shared + 1 :][is_trained]
    losses = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")
    loss = (losses * torch.tensor(weights)[:, None].expand_as(is_trained)[is_trained]).mean()
    loss.backward()
    return float(loss.detach())


class Recipe:
    """Runs the stages of the training in a folder.

    Args:
        args: The arguments of the command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.work = args, args.work
        self.base = str(make_model(default_folder()))

    def episode(self, **changes: Any) -> dict[str, Any]:
        """Returns the settings of an episode: the common settings with changes."""
        settings = {"toolset": "compact", "tool_format": TOOL_FORMAT, "max_turns": 1}
        settings |= {"tokenizer": f"hf:{self.base}", "grading": "cached", "challenge": "resolved"}
        return {**settings, **changes}

    def demos(self) -> None:
        """Writes the tasks, and the token ids of the demonstrations for SFT."""
        out = self.work / "demos.jsonl"
        if out.exists():
            print(f"{out} already exists")
            return
        if not (self.args.bench / "train.jsonl").exists():
            command = f"python benchmarks/learning/programs.py {self.args.bench}"
            raise SystemExit(f"{self.args.bench} has no bugs; write them: {command}")
        write_tasks(self.args.bench, self.work, self.args.held_out)
        bugs = demonstrations(self.args.seed)
        with out.with_suffix(".part").open("w", encoding="utf-8") as file:
            for report, arguments in islice(bugs, self.args.sft_steps * BATCH):
                values = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
                example = demonstration(report, f"[edit({values})]", f"hf:{self.base}")
                file.write(json.dumps(example) + "\n")
        out.with_suffix(".part").rename(out)

    def sft(self) -> None:
        """Fine-tunes on the demonstrations, each used once."""
        lines = (self.work / "demos.jsonl").read_text(encoding="utf-8").splitlines()
        examples = sorted(map(json.loads, lines), key=lambda example: len(example["prompt_ids"]))
        batches = [examples[at : at + BATCH] for at in range(0, len(examples), BATCH)]
        order = np.random.default_rng(self.args.seed).permutation(len(batches))

        def update(step: int, model: Any) -> dict[str, float]:
            batch = batches[order[step]]  # prompts of similar length, for less padding
            return {"loss": learn(model, batch, [1.0] * len(batch))}

        self._train("sft", self.base, update)

    def grpo(self) -> None:
        """Trains by GRPO: the weight of a reply is the advantage in its task's group."""
        tasks = load_tasks(str(self.work / "grpo.jsonl"))
        by_tests = self.args.reward == "tests"
        order = np.random.default_rng(self.args.seed).permutation(len(tasks))
        policy = load(self.work / "sft", torch.bfloat16)  # halves the sampling time
        agent = HuggingFaceAgent(self.base, SAMPLING, loaded=policy)

        def update(step: int, model: Any) -> dict[str, float]:
            policy.load_state_dict(model.state_dict())
            indices = range(step * GROUPS, (step + 1) * GROUPS)
            selected_tasks = [tasks[order[index % len(tasks)]] for index in indices]
            folder = self.work / "grpo-episodes" / f"{step:04}"
            shutil.rmtree(folder, ignore_errors=True)  # left by a killed run
            settings: dict[str, Any] = {"attempts": ATTEMPTS, "concurrency": GROUPS * ATTEMPTS}
            settings["episode"] = self.episode(grading="cached" if by_tests else "none")
            run = evaluate(folder, agent, tasks=selected_tasks, seed=step, **settings)
            records = list(run.trajectories())  # without infrastructure failures
            rewards, loss = [], 0.0
            for task in selected_tasks:
                group = [record for record in records if record.task_id == task.task_id]
                patches = [record.patch for record in group]
                scores = np.array([line_similarity(task.gold_patch, patch) for patch in patches])
                if self.args.reward == "gold":
                    scores = np.floor(scores)
                elif by_tests:
                    scores = np.array([record.total_reward for record in group])
                rewards += scores.tolist()
                if len(set(scores)) > 1:
                    advantages = (scores - scores.mean()) / scores.std() / GROUPS
                    examples = [training_example(record) for record in group]
                    loss += learn(model, examples, advantages.astype(np.float32))
            repaired = float(np.mean(np.array(rewards) == 1.0))
            return {"reward": float(np.mean(rewards)), "repaired": repaired, "loss": loss}

        self._train("grpo", self.work / "sft", update)

    def _train(
        self, stage: str, start: str | Path, update: Callable[[int, Any], dict[str, float]]
    ) -> None:
        """Trains all weights.

        The learning rate rises during the first fifteenth of the updates, then falls to zero.
        ``update`` adds the gradient of one step to the model, and returns values for the curve.
        """
        steps, learning_rate = (vars(self.args)[f"{stage}_{n}"] for n in ("steps", "learning_rate"))
        out = self.work / stage
        if out.exists():
            print(f"{out} already exists")
            return
        model = load(start, torch.float32)
        optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
        curve = self.work / f"{stage}-curve.jsonl"
        with curve.open("w", encoding="utf-8") as file:
            for step in range(steps):
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate * min(14 * (step + 1), steps - step) / steps
                optimizer.zero_grad()
                values = update(step, model)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                text = ", ".join(f"{name} {value:.3f}" for name, value in values.items())
                print(f"{stage} {step + 1}/{steps}, {text}", flush=True)
                print(json.dumps({"step": step, **values}), file=file, flush=True)
        partial_folder = out.with_suffix(".part")
        # In float32, because 16 bits would lose updates of GRPO.
        model.save_pretrained(partial_folder)
        AutoTokenizer.from_pretrained(self.base).save_pretrained(partial_folder)
        partial_folder.rename(out)

    def report(self) -> None:
        """Plays the held-out tasks with the three models, and prints two comparisons.

        Intervals are over programs: the outcomes of all tasks of a program form one cluster.
        """
        models = {"downloaded": self.base, "sft": self.work / "sft", "grpo": self.work / "grpo"}
        outcomes = [self._outcomes(name, path) for name, path in models.items()]
        rows: dict[str, tuple[str, str]] = {}
        for names, (first, second) in zip(pairwise(models), pairwise(outcomes), strict=True):
            comparison = paired_difference(first, second)
            rows[names[0]] = cells(comparison.rate_a, percent)
            rows[names[1]] = cells(comparison.rate_b, percent)
            rows[f"{names[1]} - {names[0]}"] = cells(comparison.difference, percent)
        table = [(name, *row) for name, row in rows.items()]
        print(markdown_table(("resolved", "mean", "95 % interval over programs"), table))
        for name, by_program in zip(models, outcomes, strict=True):
            values = [value for attempts in by_program.values() for value in attempts]
            print(f"{name}: {sum(values):.0f} of {len(values)} attempts are resolved")
        print(f"loss and reward of each update: {self.work}/*-curve.jsonl")
        print(f"compare attempts: coding-gym view {self.work}")

    def _outcomes(self, name: str, model: str | Path) -> dict[str, list[float]]:
        """Returns the outcomes of a model by program; 1.0 is a resolved attempt.

        The hidden tests run once for each patch, without a challenge: a model of this size
        cannot write a cheat of a few words, and the plan of a challenge takes about 20 test runs
        for each bug. The grades are written to the run's folder, for `coding-gym report` and the
        other commands.
        """
        folder = self.work / f"eval-{name}"
        player = HuggingFaceAgent(str(model), SAMPLING, loaded=load(model, torch.bfloat16))
        settings: dict[str, Any] = {"resume": True}
        if not (folder / "config.json").exists():
            attempts = 1 if name == "downloaded" else self.args.attempts
            settings = {"attempts": attempts, "concurrency": 32, "seed": self.args.seed}
            settings["episode"] = self.episode(tokenizer=player.tokenizer, grading="none")
            settings["tasks"] = str(self.work / "test.jsonl")

        def add(record: Trajectory) -> None:
            print(f"{name}, {record.task_id} {record.error or 'played'}", flush=True)

        run = evaluate(folder, player, on_done=add, **settings)
        tasks = {task.task_id: task for task in load_tasks(str(self.work / "test.jsonl"))}
        num_attempts = len(tasks) * run.config["attempts"]
        if (num_done := len(run.keys())) < num_attempts:
            problem = f"{name}: {num_done} of {num_attempts} attempts were played"
            raise SystemExit(f"{problem}; run the stage report again")
        templates = TemplateStore()
        outcomes: dict[str, list[float]] = {}
        with run.writer():
            for record in list(run.trajectories()):
                task, verdict = tasks[record.task_id], record.grade
                if verdict is None or verdict.reason is GradeReason.NOT_GRADED:
                    patch, template = Patch(record.patch), templates.get(task)
                    verdict = grade(task, template, patch, challenge="none")
                    run.add(replace(record, grade=verdict))
                outcomes.setdefault(task.repo, []).append(float(verdict.resolved))
        return outcomes


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Displays defaults, and the description without line wrapping."""


def main() -> None:
    """Runs the stages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Help)
    parser.add_argument(
        "stage", nargs="*", metavar="STAGE", help=f"stages to run, of {STAGES}; all by default"
    )
    parser.add_argument(
        "--bench", type=Path, default="bench", help="folder of bugs from benchmarks/learning"
    )
    parser.add_argument("--work", type=Path, default="runs/real-model", help="output folder")
    parser.add_argument("--sft-steps", type=int, default=140, help="updates of 8 demonstrations")
    parser.add_argument("--sft-learning-rate", type=float, default=4e-4, help="peak rate of SFT")
    parser.add_argument("--grpo-steps", type=int, default=80, help="updates of 32 episodes")
    parser.add_argument("--grpo-learning-rate", type=float, default=1e-4, help="peak rate of GRPO")
    parser.add_argument(
        "--reward",
        choices=("gold", "similarity", "tests"),
        default="gold",
        help="gold: 1 for the gold patch; similarity: of the lines; tests: 1 if hidden tests pass",
    )
    parser.add_argument("--attempts", type=int, default=2, help="attempts at each held-out bug")
    parser.add_argument("--held-out", type=int, default=8, help="bugs of each held-out program")
    parser.add_argument("--seed", type=int, default=0, help="seed of bugs, orders and episodes")
    args = parser.parse_args()
    if unknown := set(args.stage) - set(STAGES):
        parser.error(f"unknown stages {sorted(unknown)}; there are {', '.join(STAGES)}")
    args.work.mkdir(parents=True, exist_ok=True)
    recipe = Recipe(args)
    for stage in args.stage or STAGES:
        print(f"stage {stage}", flush=True)
        getattr(recipe, stage)()


if __name__ == "__main__":
    main()
