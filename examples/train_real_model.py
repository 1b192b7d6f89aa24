r"""Trains SmolLM2-135M on a CPU to repair one-line bugs: demonstrations, SFT, GRPO, a report.

    pip install -e '.[hf]' torch accelerate gguf
    python benchmarks/learning/programs.py bench          # the bugs, in a few minutes
    python examples/train_real_model.py --bench bench     # everything, in one to three hours
    python examples/train_real_model.py --bench bench --sft-steps 20 --grpo-steps 5    # a trial

Each stage continues where a killed run stopped, and a stage that is complete is skipped; name one
(``demos``, ``sft``, ``grpo``, ``report``) to run it alone. Half of the programs are held out.

On a CPU the time of an episode grows with its tokens, so episodes are as short as they can be. The
report names the file and displays ten lines of it, the faulty one among them at a random place. The
reply is one call of the tool ``edit`` of the toolset ``compact``, and the patch is graded then. A
demonstration replaces that line by the one of the gold patch. All weights are trained, in float32
under bfloat16 autocast: a step of LoRA took longer on two cores.
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
from rich.progress import Progress

from coding_gym import load_tasks
from coding_gym.agents.chat import Sampling
from coding_gym.agents.demonstration import Edit, in_line, next_edit
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.live_episode import ActionsPlayer
from coding_gym.calls import ToolCall
from coding_gym.episode import Episode
from coding_gym.evaluation import Report, compare, evaluate, report
from coding_gym.mutation.source import Source
from coding_gym.patch import Patch
from coding_gym.rewards import line_similarity
from coding_gym.synthesis.mutants import find_mutants, in_turn
from coding_gym.task import Task
from coding_gym.tasks.sources.reversal import reversed_patch
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools.formats import write_call
from coding_gym.trajectory import Trajectory

try:
    import torch
    from real_model import default_folder, make_model
    from transformers import AutoModelForCausalLM, AutoTokenizer
except ImportError as missing:
    raise SystemExit(f"{missing}; run: pip install -e '.[hf]' torch accelerate gguf") from None

STAGES = ("demos", "sft", "grpo", "report")
SHOWN_LINES = 6
MAX_CHARS = 90  # in a line to repair
MUTANTS_PER_FILE = 10
NOT_LIBRARY = re.compile("test|site-packages|dist-packages|idlelib|lib2to3|turtledemo")
HELD_OUT_PER_PROGRAM = 4
BATCH = 8  # demonstrations in an update of SFT
GROUPS, ATTEMPTS = 4, 8  # tasks in an update of GRPO, and episodes of each
SAVE_STEPS = 20  # updates between two saved states
SAMPLING = Sampling(temperature=1.0, top_p=1.0, top_k=0, max_tokens=64)


def digest(name: str) -> int:
    """Returns a number that looks random, and is the same in every run."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def statement(path: str, text: str, number: int, key: str) -> str:
    """Returns a report that displays lines of a file, the faulty one at a random place."""
    first = max(1, number - digest(key) % SHOWN_LINES)
    lines = text.split("\n")[first - 1 : first - 1 + SHOWN_LINES]
    shown = "\n".join(f"{first + at} {line}" for at, line in enumerate(lines))
    return f"One of these lines of {path} is wrong:\n{shown}\n"


def one_line(broken: str, fixed: str) -> Edit | None:
    """Returns the edit that repairs a text; None where it changes more than a short line."""
    edit = next_edit(broken, fixed, is_unique=False)
    counts = (edit.old.count("\n"), edit.new.count("\n"))
    is_short = max(len(edit.old), len(edit.new)) <= MAX_CHARS
    return edit if counts == (1, 1) and is_short and edit.apply(broken) == fixed else None


def write_tasks(bench: Path, work: Path) -> None:
    """Writes the tasks of bugs in one line, half of the programs held out."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for split in (bench / "train.jsonl", bench / "test.jsonl"):
        for row in map(json.loads, split.read_text(encoding="utf-8").splitlines()):
            (path,), tree = Patch(row["patch"]).paths, (bench / row["folder"]).resolve()
            fixed = (tree / path).read_text(encoding="utf-8")
            broken = reversed_patch(Patch(row["patch"])).files[0].apply(fixed)
            if edit := one_line(broken, fixed):
                report = statement(path, broken, edit.line, row["instance_id"])
                row |= {"folder": str(tree), "problem_statement": report}
                rows.setdefault(row["repo"], []).append(row)
    names = sorted(rows, key=digest)
    held_out, others = names[: len(names) // 2], names[len(names) // 2 :]
    for name, chosen, most in (("test", held_out, HELD_OUT_PER_PROGRAM), ("grpo", others, None)):
        text = "".join(f"{json.dumps(row)}\n" for repo in chosen for row in rows[repo][:most])
        (work / f"{name}.jsonl").write_text(text, encoding="utf-8")


def demonstrations(seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields reports of bugs in Python's standard library, with the call that repairs each.

    No test confirms these bugs. None of the programs of the bench is in the library.
    """
    library, rng = Path(sysconfig.get_path("stdlib")), random.Random(seed)  # noqa: S311
    files = [path.relative_to(library).as_posix() for path in sorted(library.rglob("*.py"))]
    files = [name for name in files if not NOT_LIBRARY.search(name)]
    rng.shuffle(files)
    for name in files:
        source = Source.from_bytes(name, (library / name).read_bytes())
        mutants = in_turn(find_mutants(source, lambda _: True), rng) if source else iter(())
        for mutant in islice(mutants, MUTANTS_PER_FILE):
            if edit := one_line(mutant.text, mutant.source):
                key = f"{name}{mutant.change.edits}"
                yield statement(name, mutant.text, edit.line, key), in_line(name, edit)


def demonstration(record: Trajectory, report: str, reply: str) -> dict[str, Any]:
    """Returns the record of a played demonstration, with another report and reply, as ids."""
    ids = get_tokenizer(record.tokenizer).encode(reply)
    turn = replace(record.turns[0], action=reply, token_ids=tuple(ids))
    messages = ({"role": "user", "content": report}, {"role": "assistant", "content": reply})
    other = replace(record, messages=(record.messages[0], *messages), turns=(turn,))
    example = other.to_training_example(include_inexact=True)
    return {name: example[name] for name in ("prompt_ids", "completion_ids", "env_mask")}


def batched(examples: Sequence[dict[str, Any]], seed: int) -> list[list[dict[str, Any]]]:
    """Returns batches in random order, each of examples of similar length: less padding."""
    rng = np.random.default_rng(seed)
    batches = []
    for start in range(0, len(examples), BATCH * 16):
        chunk = sorted(examples[start : start + BATCH * 16], key=lambda e: len(e["prompt_ids"]))
        groups = [chunk[first : first + BATCH] for first in range(0, len(chunk), BATCH)]
        batches += [groups[index] for index in rng.permutation(len(groups))]
    return batches


def learn(model: Any, examples: Sequence[dict[str, Any]], weights: Sequence[float]) -> float:
    """Adds the gradient of some episodes to the model, and returns their loss.

    The loss is the mean of -weight * log p over all ids that were sampled or demonstrated. The
    model reads the ids that all prompts begin with once, and their keys and values serve all rows:
    the system prompt with the tools, or the whole prompt where the episodes are of one task.
    """
    sequences = [[*one["prompt_ids"], *one["completion_ids"]] for one in examples]
    prompts = [one["prompt_ids"] for one in examples]
    columns = [len(set(column)) == 1 for column in zip(*prompts, strict=False)]
    num_shared = [*columns[:-1], False].index(False)
    width = max(map(len, sequences))
    ids = torch.tensor([one + [0] * (width - len(one)) for one in sequences])
    mask = torch.tensor([[1] * len(one) + [0] * (width - len(one)) for one in sequences])
    learned = torch.zeros_like(ids, dtype=torch.bool)
    for row, one in enumerate(examples):
        end = len(sequences[row])
        learned[row, end - len(one["env_mask"]) : end] = torch.tensor(one["env_mask"]).bool()
    learned = learned[:, num_shared + 1 :]
    with torch.autocast("cpu", torch.bfloat16):
        start = model.base_model(input_ids=ids[:1, :num_shared], use_cache=True)
        name = "cache" if "cache" in start else "past_key_values"  # before transformers 5.24
        start[name].batch_repeat_interleave(len(examples))
        rest = {"input_ids": ids[:, num_shared:], "attention_mask": mask, name: start[name]}
        output = model.base_model(**rest)
        logits = model.lm_head(output.last_hidden_state[:, :-1][learned])
    labels = ids[:, num_shared + 1 :][learned]
    losses = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")
    loss = (losses * torch.tensor(weights)[:, None].expand_as(learned)[learned]).mean()
    loss.backward()
    return float(loss.detach())


class Recipe:
    """The stages, in a folder of their own.

    Args:
        args: The command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.work = args, args.work
        self.base = str(make_model(default_folder()))

    def episode(self, **others: Any) -> dict[str, Any]:
        """Returns the settings of all episodes."""
        settings = {"toolset": "compact", "tool_format": self.args.tool_format, "max_turns": 1}
        settings |= {"tokenizer": f"hf:{self.base}", "grading": "cached", "challenge": "resolved"}
        return {**settings, **others}

    def _demonstrate(self, episode: Episode, _: int) -> Iterator[str]:
        """Yields the reply that makes the edit of the gold patch."""
        (change,) = Patch(episode.task.gold_patch).files
        with episode.access() as context:
            before = context.sandbox.read_file(change.path).decode("utf-8")
        edit = next_edit(before, change.apply(before), is_unique=False)
        yield self._reply(in_line(change.path, edit))

    def _reply(self, arguments: dict[str, Any]) -> str:
        return write_call(ToolCall("edit", arguments), self.args.tool_format)

    def demos(self) -> None:
        """Writes the tasks, and the ids of as many demonstrations as SFT needs.

        One demonstration is played. The others are its record with another report and reply, which
        is as exact as playing them: the prompt depends on nothing else.
        """
        out = self.work / "demos.jsonl"
        if out.exists():
            print(f"{out} is there already")
            return
        write_tasks(self.args.bench, self.work)
        first = load_tasks(str(self.work / "grpo.jsonl"))[0]
        folder = self.work / "demo"
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
        player = ActionsPlayer("demonstration", self._demonstrate)
        run = evaluate(folder, player, tasks=[first], episode=self.episode())
        (record,) = run.trajectories()
        if not record.resolved:
            raise SystemExit(f"the demonstration of {first.task_id} does not resolve it")
        bugs = demonstrations(self.args.seed)
        with out.with_suffix(".part").open("w", encoding="utf-8") as file:
            for report, arguments in islice(bugs, self.args.sft_steps * BATCH):
                example = demonstration(record, report, self._reply(arguments))
                file.write(json.dumps(example) + "\n")
        out.with_suffix(".part").rename(out)

    def sft(self) -> None:
        """Fine-tunes on the demonstrations; each is seen once."""
        lines = (self.work / "demos.jsonl").read_text(encoding="utf-8").splitlines()
        examples = [json.loads(line) for line in lines]
        batches = batched(examples, self.args.seed)

        def update(step: int, model: Any) -> dict[str, float]:
            return {"loss": learn(model, batches[step], [1.0] * len(batches[step]))}

        steps = len(batches)
        self._train("sft", self.base, steps, self.args.sft_learning_rate, update)

    def grpo(self) -> None:
        """Trains by GRPO: a reply is weighted by how much better it was than others of its task."""
        tasks = load_tasks(str(self.work / "grpo.jsonl"))
        grading = "cached" if self.args.reward == "tests" else "none"
        order = np.random.default_rng(self.args.seed).permutation(len(tasks))
        agents: list[HuggingFaceAgent] = []

        def update(step: int, model: Any) -> dict[str, float]:
            agents[:] = agents or [HuggingFaceAgent(self.base, SAMPLING, loaded=model)]
            places = range(step * GROUPS, (step + 1) * GROUPS)
            drawn = [tasks[order[place % len(tasks)]] for place in places]
            folder = self.work / "grpo-episodes" / f"{step:04}"
            shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
            settings = {"attempts": ATTEMPTS, "concurrency": GROUPS * ATTEMPTS, "seed": step}
            episode = self.episode(grading=grading)
            run = evaluate(folder, agents[0], tasks=drawn, episode=episode, **settings)
            records = list(run.trajectories())  # without infrastructure failures
            rewards, loss = [], 0.0
            for task in drawn:
                group = [record for record in records if record.task_id == task.task_id]
                scores = np.array([self._score(one, task) for one in group])
                rewards += scores.tolist()
                if len(set(scores)) > 1:
                    advantages = (scores - scores.mean()) / scores.std() / GROUPS
                    examples = [one.to_training_example() for one in group]
                    loss += learn(model, examples, advantages.astype(np.float32))
            repaired = float(np.mean(np.array(rewards) == 1.0))
            return {"reward": float(np.mean(rewards)), "repaired": repaired, "loss": loss}

        model = str(self.work / "sft")
        self._train("grpo", model, self.args.grpo_steps, self.args.grpo_learning_rate, update)

    def _score(self, record: Trajectory, task: Task) -> float:
        """Returns the reward of an episode: of the tests, or the thesis's line similarity."""
        if self.args.reward == "tests":
            return record.total_reward
        return line_similarity(task.gold_patch, record.patch)

    def _train(
        self,
        stage: str,
        start: str,
        steps: int,
        learning_rate: float,
        update: Callable[[int, Any], dict[str, float]],
    ) -> None:
        """Trains all weights; a killed stage continues from its last saved state.

        Args:
            stage: Name of the stage, and of the folder of the trained model.
            start: Folder of the model to begin with.
            steps: Number of updates.
            learning_rate: The highest; it rises over ten updates and falls to zero.
            update: Adds the gradient of an update, and returns figures for the curve.
        """
        out, saved = self.work / stage, self.work / f"{stage}-state.pt"
        if out.exists():
            print(f"{out} is there already")
            return
        model = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32)
        optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
        state = torch.load(saved) if saved.exists() else {"step": 0}
        if state["step"]:
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
        with Progress() as bars:
            bar = bars.add_task(stage, total=steps, completed=state["step"])
            for step in range(state["step"], steps):
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate * min((step + 1) / 10, (steps - step) / steps)
                optimizer.zero_grad()
                figures = update(step, model)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                shown = ", ".join(f"{name} {value:.3f}" for name, value in figures.items())
                bars.update(bar, advance=1, description=f"{stage}, {shown}")
                with (self.work / "curve.jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"stage": stage, "step": step, **figures}) + "\n")
                if (step + 1) % SAVE_STEPS == 0:
                    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                    torch.save({**state, "step": step + 1}, f"{saved}.part")
                    Path(f"{saved}.part").rename(saved)
        self._save(model, out)
        saved.unlink(missing_ok=True)

    def _save(self, model: Any, out: Path) -> None:
        """Writes a model folder with the tokenizer; it appears by a rename."""
        partial = out.with_suffix(".part")
        shutil.rmtree(partial, ignore_errors=True)
        model.save_pretrained(partial)  # in float32: 16 bits would round updates of GRPO away
        AutoTokenizer.from_pretrained(self.base).save_pretrained(partial)
        partial.rename(out)

    def report(self) -> None:
        """Evaluates the three models on the held-out programs and prints the table."""
        models = {"downloaded": self.base, "sft": self.work / "sft", "grpo": self.work / "grpo"}
        reports = [self._evaluated(name, str(path)) for name, path in models.items()]
        for before, after in pairwise(reports):
            print(compare(before, after).to_markdown())
        self._draw_curve()

    def _draw_curve(self) -> None:
        """Draws how reward and repaired share of GRPO's episodes rise, means of ten updates."""
        lines = (self.work / "curve.jsonl").read_text(encoding="utf-8").splitlines()
        points = {p["step"]: p for p in map(json.loads, lines) if p["stage"] == "grpo"}
        steps = sorted(points)
        drawn = [f'<path d="M40 10V190H{40 + 10 * len(steps)}" fill="none" stroke="#888"/>']
        drawn += [f'<text x="8" y="{194 - 180 * share}">{share}</text>' for share in (0, 0.5, 1)]
        for name, color in (("reward", "#888"), ("repaired", "#06c")):
            means = [
                np.mean([points[s][name] for s in steps[max(0, n - 9) : n + 1]]) for n in steps
            ]
            line = " ".join(f"{40 + 10 * n},{190 - 180 * mean:.0f}" for n, mean in enumerate(means))
            drawn.append(
                f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>'
            )
            drawn.append(
                f'<text x="{50 + 10 * len(steps)}" y="{190 - 180 * means[-1]:.0f}">{name}</text>'
            )
        size = f'viewBox="0 0 {120 + 10 * len(steps)} 215" font-family="sans-serif" font-size="12"'
        drawn.append(f'<text x="40" y="208">updates, 0 to {len(steps)}</text>')
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n' + "\n".join(drawn) + "\n</svg>\n"
        (self.work / "curve.svg").write_text(svg, encoding="utf-8")

    def _evaluated(self, name: str, model: str) -> Report:
        """Returns the report of a model on the held-out programs, which play once."""
        folder = self.work / f"eval-{name}"
        player = HuggingFaceAgent(model, SAMPLING)
        if (folder / "config.json").exists():
            evaluate(folder, player, resume=True)
        else:
            attempts = 1 if name == "downloaded" else self.args.attempts
            settings = {"attempts": attempts, "concurrency": 32, "seed": self.args.seed}
            episode = self.episode(tokenizer=player.tokenizer)
            evaluate(
                folder, player, tasks=str(self.work / "test.jsonl"), episode=episode, **settings
            )
        return report(folder)


def main() -> None:
    """Runs the stages."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "stage", nargs="*", metavar="STAGE", help=f"some of {STAGES}; all by default"
    )
    parser.add_argument("--bench", type=Path, default="bench", help="folder of programs.py")
    parser.add_argument("--work", type=Path, default="runs/real-model", help="folder of results")
    parser.add_argument("--tool-format", default="pythonic", help="NanoAgent writes hermes")
    parser.add_argument("--sft-steps", type=int, default=190, help="updates of 8 demonstrations")
    parser.add_argument("--sft-learning-rate", type=float, default=5e-4, help="the highest of SFT")
    parser.add_argument("--grpo-steps", type=int, default=60, help="updates of 32 episodes")
    parser.add_argument(
        "--grpo-learning-rate", type=float, default=1e-4, help="the highest of GRPO"
    )
    parser.add_argument("--reward", choices=("similarity", "tests"), default="similarity")
    parser.add_argument("--attempts", type=int, default=4, help="at each held-out bug")
    parser.add_argument("--seed", type=int, default=0)
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
