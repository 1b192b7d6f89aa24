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
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from coding_gym import load_tasks
from coding_gym.agents.chat import Sampling
from coding_gym.agents.demonstration import next_edit
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.live_episode import ActionsPlayer
from coding_gym.calls import ToolCall
from coding_gym.episode import Episode
from coding_gym.errors import InvalidTaskError
from coding_gym.evaluation import Report, compare, evaluate, report
from coding_gym.patch import Patch
from coding_gym.rewards import line_similarity
from coding_gym.rollout.run_folder import RunFolder
from coding_gym.task import Task
from coding_gym.tools.formats import write_call
from coding_gym.trajectory import Trajectory

try:
    import torch
    from real_model import default_folder, make_model
    from transformers import AutoModelForCausalLM, AutoTokenizer
except ImportError as missing:
    raise SystemExit(f"{missing}; run: pip install -e '.[hf]' torch accelerate gguf") from None

STAGES = ("demos", "sft", "grpo", "report")
SHOWN_LINES = 10
HELD_OUT_PER_PROGRAM = 4
BATCH = 8  # demonstrations in an update of SFT, and rollouts of one task in GRPO
GROUPS = 2  # tasks in an update of GRPO
SAVE_STEPS = 20  # updates between two saved states
SAMPLING = Sampling(temperature=1.0, top_p=1.0, top_k=0, max_tokens=128)


def digest(name: str) -> int:
    """Returns a number that looks random, and is the same in every run."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def located(row: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    """Returns a row whose report displays lines around the bug.

    Returns:
        None for a bug of several lines, and for a task that is refused.
    """
    files = Patch(row["patch"]).files
    hunks = [(change.path, hunk) for change in files for hunk in change.hunks()]
    signs = "".join(line[0] for _, hunk in hunks for line in hunk.body)
    if len(hunks) != 1 or signs.strip() != "-+":
        return None
    (path, hunk), tree = hunks[0], folder / row["folder"]
    number = hunk.old_start + signs.index("-")
    broken = next(line[1:] for line in hunk.body if line[0] == "-")
    lines = (tree / path).read_text(encoding="utf-8").split("\n")
    lines[number - 1] = broken
    first = max(1, number - digest(row["instance_id"]) % SHOWN_LINES)
    shown = "\n".join(lines[first - 1 : first - 1 + SHOWN_LINES])
    statement = f"{row['problem_statement']}\n{path}, from line {first}:\n```\n{shown}\n```\n"
    row = {**row, "folder": str(tree.resolve()), "problem_statement": statement}
    try:
        load_tasks([row])
    except InvalidTaskError:
        return None
    return row


def write_tasks(bench: Path, work: Path) -> None:
    """Writes the tasks of each stage: half of the programs are held out, a third is for SFT."""
    rows = [
        row
        for split in ("train", "test")
        for line in (bench / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
        if (row := located(json.loads(line), bench))
    ]
    names = sorted({row["repo"] for row in rows}, key=digest)
    bounds = [0, len(names) // 2, len(names) * 2 // 3, len(names)]
    for split, (start, end) in zip(("test", "grpo", "sft"), pairwise(bounds), strict=True):
        most = HELD_OUT_PER_PROGRAM if split == "test" else None
        tasks = [[row for row in rows if row["repo"] == name][:most] for name in names[start:end]]
        text = "".join(f"{json.dumps(row)}\n" for program in tasks for row in program)
        (work / f"{split}.jsonl").write_text(text, encoding="utf-8")


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

    def demonstrate(self, episode: Episode, _: int) -> Iterator[str]:
        """Yields the reply that makes the edit of the gold patch."""
        (change,) = Patch(episode.task.gold_patch).files
        with episode.access() as context:
            before = context.sandbox.read_file(change.path).decode("utf-8")
        edit = next_edit(before, change.apply(before))
        arguments = {"path": change.path, "old": edit.old, "new": edit.new}
        yield write_call(ToolCall("edit", arguments), self.args.tool_format)

    def demos(self) -> None:
        """Plays the demonstrations; the bugs were confirmed when the bench was made."""
        if not (self.work / "test.jsonl").exists():
            write_tasks(self.args.bench, self.work)
        folder = self.work / "demos"
        player = ActionsPlayer("demonstration", self.demonstrate)
        if (folder / "config.json").exists():
            evaluate(folder, player, resume=True)
        else:
            tasks, episode = str(self.work / "sft.jsonl"), self.episode(grading="none")
            evaluate(folder, player, tasks=tasks, episode=episode, concurrency=2)

    def _drawn(self, items: Sequence[Any], step: int, number: int) -> list[Any]:
        """Returns the items of an update; each is drawn once per epoch."""
        drawn = []
        for place in range(step * number, (step + 1) * number):
            epoch, index = divmod(place, len(items))
            order = np.random.default_rng([self.args.seed, epoch]).permutation(len(items))
            drawn.append(items[order[index]])
        return drawn

    def sft(self) -> None:
        """Fine-tunes on the demonstrations."""
        run = RunFolder.open(self.work / "demos")
        examples = [one.to_training_example(include_inexact=True) for one in run.trajectories()]

        def update(step: int, model: Any) -> dict[str, float]:
            return {"loss": learn(model, self._drawn(examples, step, BATCH), [1.0] * BATCH)}

        self._train("sft", self.base, self.args.sft_steps, self.args.sft_learning_rate, update)

    def grpo(self) -> None:
        """Trains by GRPO: a reply is weighted by how much better it was than others of its task."""
        tasks = load_tasks(str(self.work / "grpo.jsonl"))
        by_tests = self.args.reward == "tests"
        agents: list[HuggingFaceAgent] = []

        def update(step: int, model: Any) -> dict[str, float]:
            agent = agents[0] if agents else HuggingFaceAgent(self.base, SAMPLING, loaded=model)
            agents[:] = [agent]
            rewards, loss = [], 0.0
            for task in self._drawn(tasks, step, GROUPS):
                folder = self.work / "grpo-episodes" / f"{step:04}-{task.task_id}"
                shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
                episode = self.episode() if by_tests else self.episode(grading="none")
                run = evaluate(
                    folder, agent, tasks=[task], episode=episode, attempts=BATCH, seed=step
                )
                group = list(run.trajectories())  # without infrastructure failures
                scores = np.array([self._score(one, task) for one in group])
                rewards += scores.tolist()
                if len(set(scores)) > 1:
                    advantages = (scores - scores.mean()) / scores.std() / GROUPS
                    examples = [one.to_training_example() for one in group]
                    loss += learn(model, examples, advantages.astype(np.float32))
            return {"reward": float(np.mean(rewards)) if rewards else 0.0, "loss": loss}

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
        optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.0)
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
        model.to(torch.bfloat16).save_pretrained(partial)
        AutoTokenizer.from_pretrained(self.base).save_pretrained(partial)
        partial.rename(out)

    def report(self) -> None:
        """Evaluates the three models on the held-out programs and prints the table."""
        models = {"downloaded": self.base, "sft": self.work / "sft", "grpo": self.work / "grpo"}
        reports = [self._evaluated(name, str(path)) for name, path in models.items()]
        for before, after in pairwise(reports):
            print(compare(before, after).to_markdown())
        self._print_curve()

    def _print_curve(self) -> None:
        """Prints the mean reward of every ten updates of GRPO as a bar."""
        lines = (self.work / "curve.jsonl").read_text(encoding="utf-8").splitlines()
        rewards = {p["step"]: p["reward"] for p in map(json.loads, lines) if p["stage"] == "grpo"}
        print("updates, mean reward of their episodes")
        for start in range(0, len(rewards), 10):
            mean = np.mean([rewards[step] for step in range(start, start + 10) if step in rewards])
            print(f"{start:4}-{start + 9:<4} {mean:.3f} {'#' * round(60 * mean)}")

    def _evaluated(self, name: str, model: str) -> Report:
        """Returns the report of a model on the held-out programs, which play once."""
        folder = self.work / f"eval-{name}"
        player = HuggingFaceAgent(model, SAMPLING)
        if (folder / "config.json").exists():
            evaluate(folder, player, resume=True)
        else:
            settings = {"attempts": self.args.attempts, "concurrency": 16, "seed": self.args.seed}
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
    parser.add_argument("--sft-steps", type=int, default=90, help="updates of 8 demonstrations")
    parser.add_argument("--sft-learning-rate", type=float, default=2e-4, help="the highest of SFT")
    parser.add_argument("--grpo-steps", type=int, default=60, help="updates of 16 episodes")
    parser.add_argument(
        "--grpo-learning-rate", type=float, default=2e-5, help="the highest of GRPO"
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
