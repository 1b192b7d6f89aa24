"""A language model of 1.3 million parameters that repairs code: imitation, then GRPO.

    python benchmarks/learning/programs.py --out bench                      # the tasks, once
    python benchmarks/learning/learn.py bench --trainers language_model     # three seeds
    python benchmarks/learning/language_model.py bench/train.jsonl bench/test.jsonl    # one seed

The model reads a report, asks which edits may repair the program, puts one in place, reads how the
visible tests go with it, tries another or submits. Its tokens are those of the bundled vocabulary,
its chat template is ChatML, and its rewards are the grades of its episodes.

It first imitates an expert that is mediocre on purpose: it often tries a wrong edit, and then
submits it in half of the cases. The model learns the form of calls and that there is another try.
Which edits to try, and for how long, is left to GRPO, on the tasks that the expert can repair. The
condition ``patient expert`` of ``experiments.py`` imitates one that never gives up.

Needs: pip install -e '.[trl]'
"""

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from coding_gym.agents.protocol import Agent, Play, Seat
from menu_episodes import NUM_CANDIDATES

from coding_gym import load_tasks
from coding_gym.adapters.trl_episodes import EpisodeRollouts
from coding_gym.agents.chat import Sampling
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.live_episode import GeneratorPlayer
from coding_gym.calls import ToolCall
from coding_gym.episode.lifecycle import Context
from coding_gym.errors import MachineryError
from coding_gym.evaluation import evaluate
from coding_gym.patch import Patch
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import arguments_from
from coding_gym.repair.program import CandidateProgram
from coding_gym.repair.shortlist import Shortlist
from coding_gym.rewards import calibrated_similarity
from coding_gym.task import Task
from coding_gym.text.tokenizers import bundled_encoding
from coding_gym.tools import SUBMIT, Refusal, Tool, ToolContext, Toolset, register_toolset
from coding_gym.tools import files as workspace
from coding_gym.tools.call_arguments import whole_number
from coding_gym.tools.formats import render_calls
from coding_gym.trajectory import Trajectory
from coding_gym.workspace import Template, TemplateStore

try:
    import torch
    from datasets import Dataset
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    from transformers.convert_slow_tokenizer import bytes_to_unicode
    from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
except ImportError as missing:
    raise SystemExit(f"{missing}; run: pip install -e '.[trl]'") from None

PACKAGES = ("torch", "transformers", "trl")
NUM_LISTED = 12  # of them
NUM_TOKENS = 4096
_MAX_CHARS = 28  # of a line, and of an edit, in the list
_tasks: dict[str, Task] = {}  # by the key of their template
# ChatML with the names of the tools alone: the model learns from demonstrations what they take, and
# their schemas would be half of all that it reads.
_CHAT_TEMPLATE = """\
{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}{% if loop.first and tools %} \
Tools: {{ tools | map(attribute="function.name") | join(", ") }}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


# Tools with short answers, since a small model reads few tokens.


def program_in(context: ToolContext) -> CandidateProgram:
    """Returns the candidates of the program that a tool works on."""
    if not isinstance(context, Context):
        raise TypeError(f"the tools need the context of an episode, got {context!r}")
    return program_of(context.template)


def program_of(template: Template) -> CandidateProgram:
    """Returns the candidates of an episode's program, which all episodes share."""
    task = _tasks[template.key]
    return CandidateProgram(
        template,
        "auto",
        arguments_from(task.visible_test_command),
        NUM_CANDIDATES,
        has_own_pytest=task.has_own_pytest,
    )


def register_tasks(tasks: Path) -> None:
    """Lets the tools know the tasks of a file."""
    store = TemplateStore("auto")
    _tasks.update({store.get(task).key: task for task in load_tasks(str(tasks))})


def suggest(_: ToolCall, context: ToolContext) -> str:
    """Answers with the likeliest candidates, in the order of the menu."""
    shortlist = program_in(context).shortlist()
    listed = enumerate(shortlist.candidates[:NUM_LISTED], 1)
    return "\n".join(f"{n} {described(c, shortlist)}" for n, c in listed) or "no test fails"


def described(candidate: Candidate, shortlist: Shortlist) -> str:
    """Returns one line that says what a candidate changes."""
    edit, text = candidate.edits[0], shortlist.texts[candidate.path]
    start = text.rfind("\n", 0, edit.start) + 1
    line = text[start:].partition("\n")[0].strip()
    old = " ".join(text[edit.start : edit.end].split())
    new = " ".join(edit.replacement.split())
    return f"{line[:_MAX_CHARS]} : {old[:_MAX_CHARS]} => {new[:_MAX_CHARS]}"


def put(call: ToolCall, context: ToolContext) -> str:
    """Takes back the candidate in place, puts another one there, and runs the visible tests."""
    program = program_in(context)
    shortlist, number = program.shortlist(), whole_number(call, "edit")
    if not 1 <= number <= min(NUM_LISTED, len(shortlist.candidates)):
        raise Refusal("`edit` must be a number of the list")
    candidate = shortlist.candidates[number - 1]
    changed = candidate.changed(shortlist.texts)
    for path in {*context.state.get("changed", ()), *changed}:
        file = workspace.open_file(context, path)
        workspace.save(context, file, changed.get(path, shortlist.texts[path]))
    context.state["changed"] = sorted(changed)
    trial = program.trial(shortlist, number - 1)
    if trial.is_plausible:
        return "all tests pass"
    if trial.breaks_others:
        return "other tests fail"
    failing = shortlist.baseline.failing if shortlist.baseline else ()
    return f"{len(failing) - trial.num_fixed} tests fail"


TOOLSET = Toolset(
    name="edits",
    system_prompt="Repair the program.",
    tools=(
        Tool(name="suggest", description="List edits.", run=suggest),
        Tool(
            name="put",
            description="Put an edit in place, test it.",
            parameters={"edit": {"type": "integer"}},
            run=put,
        ),
        SUBMIT,
    ),
    examples=(ToolCall("suggest"),),
)
EPISODE: Mapping[str, Any] = {"toolset": TOOLSET.name, "grading": "cached"}


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is trained.

    Attributes:
        attempts: Demonstrations of each task that the expert can repair.
        gives_up: How often the expert submits an edit that fails.
        imitated: Updates of imitation, of 8 demonstrations each.
        reinforced: Updates of GRPO.
        batch: Episodes of an update.
        group: Attempts at one task.
        max_turns: Turns of an episode.
        similarity: What a patch like the gold patch earns in GRPO beside its grade: this times
            `calibrated_similarity`.
    """

    attempts: int = 3
    gives_up: float = 0.5
    imitated: int = 240
    reinforced: int = 20
    batch: int = 128
    group: int = 8
    max_turns: int = 8
    similarity: float = 0.0


# The model.


def new_tokenizer() -> PreTrainedTokenizerFast:
    """Returns the bundled vocabulary as a tokenizer of transformers, with a chat template.

    It has the first tokens only: most of an update goes into the vocabulary.
    """
    encoding = bundled_encoding()
    ranks = {token: n for token, n in encoding["mergeable_ranks"].items() if n < NUM_TOKENS}
    characters = bytes_to_unicode()

    def spelled(token: bytes) -> str:
        return "".join(characters[byte] for byte in token)

    def parts(token: bytes) -> list[bytes]:  # the two tokens that are merged last
        found = [token[i : i + 1] for i in range(len(token))]
        while len(found) > 2:
            pairs = (found[i] + found[i + 1] for i in range(len(found) - 1))
            _, i = min((ranks.get(pair, len(ranks)), i) for i, pair in enumerate(pairs))
            found[i : i + 2] = [found[i] + found[i + 1]]
        return found

    merges = [tuple(map(spelled, parts(t))) for t in sorted(ranks, key=ranks.__getitem__) if t[1:]]
    backend = Tokenizer(models.BPE({spelled(t): rank for t, rank in ranks.items()}, merges))
    split = pre_tokenizers.Split(Regex(encoding["pat_str"]), "isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([split, as_bytes])
    backend.decoder = decoders.ByteLevel()
    special = encoding["special_tokens"]
    backend.add_special_tokens(sorted(special, key=special.__getitem__))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, padding_side="left")
    tokenizer.add_special_tokens({"eos_token": "<|im_end|>", "pad_token": "<|pad|>"})
    tokenizer.chat_template = _CHAT_TEMPLATE
    return tokenizer


def new_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen2ForCausalLM:
    """Returns random weights: 1.3 million, two fifths of them the vocabulary's."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=3,
        num_attention_heads=2,  # on a CPU most of the time goes into attention's softmax
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config)


# Demonstrations.


def expert(seat: Seat, gives_up: float) -> Play:
    """Puts an edit in place, most often a right one, and submits.

    After an edit that fails it submits with the probability ``gives_up``, else tries another. Right
    is the gold repair in half of the attempts, in the others the first edit that passes the visible
    tests, as `template-repair` finds it. It does not play where none in the list is right.
    """
    template = seat.episode.template
    if template is None:
        return
    program = program_of(template)
    shortlist = program.shortlist()
    draws = Random(int(seat.action_space.np_random.integers(2**32)))  # noqa: S311 - no secret
    numbers = range(min(NUM_LISTED, len(shortlist.candidates)))
    passing = [n for n in numbers if program.trial(shortlist, n).is_plausible]
    right = passing[:1]
    if draws.random() < 0.5:
        gold = Patch(seat.task.gold_patch)
        right = [n for n in passing if _is_gold(shortlist.candidates[n], shortlist, gold)]
    if not right:
        return
    wrong = [n for n in numbers if n not in passing]
    draws.shuffle(wrong)
    yield called("suggest")
    while wrong and draws.random() < _IS_WRONG:
        yield called("put", edit=wrong.pop() + 1)
        if draws.random() < gives_up:
            break
    else:
        yield called("put", edit=draws.choice(right) + 1)
    yield called("submit")


def _is_gold(candidate: Candidate, shortlist: Shortlist, gold: Patch) -> bool:
    before = {path: shortlist.texts[path] for path in gold.paths if path in shortlist.texts}
    if before.keys() != gold.paths:
        return False
    return candidate.changed(shortlist.texts) == gold.apply(before)


def called(name: str, **arguments: int) -> str:
    """Returns a call as a list of Python: a third of the tokens of JSON."""
    return render_calls([ToolCall(name, arguments)], "pythonic")


# Training.


def run(
    train: Path, test: Path, seed: int, settings: Settings = Settings(), out: Path | None = None
) -> dict[str, Any]:
    """Trains from random weights, and plays the held-out tasks before, between and after.

    Args:
        train: A file of tasks to train on.
        test: A file of tasks of other programs.
        seed: Of the weights, the expert, and all that is sampled.
        settings: How much is trained.
        out: A folder for models and episodes; a temporary one by default.
    """
    register_toolset(TOOLSET)
    register_tasks(train)
    register_tasks(test)
    with tempfile.TemporaryDirectory() as scratch:
        return _Run(train, test, seed, settings, out or Path(scratch)).result()


class _Run:
    def __init__(self, train: Path, test: Path, seed: int, settings: Settings, out: Path) -> None:
        self._train, self._test, self._seed = train, test, seed
        self._settings, self._out = settings, out
        self._tokenizer = new_tokenizer()
        self._tokenizer.save_pretrained(out / "tokenizer")
        self._episode = {**EPISODE, "max_turns": settings.max_turns}
        self._evaluated = {**self._episode, "tokenizer": f"hf:{out / 'tokenizer'}"}

    def result(self) -> dict[str, Any]:
        model = new_model(self._tokenizer, self._seed)
        played = {"untrained": self._play(model)}
        began = time.perf_counter()
        demonstrations, imitation = self._demonstrations(), []
        if self._settings.imitated:
            imitation = self._imitate(model, list(map(self._labelled, demonstrations)))
            played["imitated"] = self._play(model)
        imitated = time.perf_counter()
        repairable = {one.task_id for one in demonstrations}
        # TRL loads the model that the KL term compares with from where this one comes from.
        model.save_pretrained(self._out / "model")
        model = Qwen2ForCausalLM.from_pretrained(self._out / "model")
        curve, turns = self._reinforce(model, repairable)
        reinforced = time.perf_counter()
        played["sampled"] = self._play(model)
        played["greedy"] = self._play(model, temperature=0.0)
        return {
            "played": played,
            "demonstrations": len(demonstrations),
            "repairable": len(repairable),
            "imitation": imitation,
            "curve": curve,
            "turns": turns,
            "imitate_s": round(imitated - began, 1),
            "train_s": round(reinforced - imitated, 1),
            "steps": self._settings.reinforced,
        }

    def _play(self, model: Any, temperature: float = 1.0) -> list[dict[str, Any]]:
        """Plays every held-out task once."""
        with tempfile.TemporaryDirectory() as folder:
            sampling = Sampling(temperature=temperature, max_tokens=_MAX_REPLY)
            agent = HuggingFaceAgent(str(self._out / "tokenizer"), sampling, loaded=model.eval())
            run = evaluate(
                agent,
                Path(folder, "run"),
                tasks=str(self._test),
                episode=self._evaluated,
                concurrency=48,
                seed=self._seed,
            )
            failed = [one.error for one in run.trajectories() if one.error_class]
            if failed:  # it says nothing of the model
                raise MachineryError(f"{len(failed)} episodes failed: {failed[0]}")
            programs = {task.task_id: task.repo for task in load_tasks(str(self._test))}
            return [
                {
                    "task_id": one.task_id,
                    "program": programs[one.task_id],
                    "resolved": one.resolved,
                    "turns": len(one.turns),
                    "test_runs": _num_puts(one),
                    "patch": one.patch if one.resolved else "",
                }
                for one in run.trajectories()
            ]

    def _demonstrations(self) -> list[Trajectory]:
        """Returns what the expert plays."""
        play = partial(expert, gives_up=self._settings.gives_up)
        player = GeneratorPlayer(Agent("expert", play))
        with tempfile.TemporaryDirectory() as folder:
            run = evaluate(
                player,
                Path(folder, "run"),
                tasks=str(self._train),
                episode=self._evaluated,
                attempts=self._settings.attempts,
                concurrency=4,
                seed=self._seed,
            )
            return [one for one in run.trajectories() if _num_puts(one)]

    def _labelled(self, trajectory: Trajectory) -> dict[str, Any]:
        """Returns a demonstration as ids with labels."""
        example = trajectory.to_training_example(include_inexact=True)
        end = self._tokenizer.eos_token_id
        ids, mask = [*example["completion_ids"], end], [*example["env_mask"], 0]
        labels, was_own = [], False
        for token, is_own in zip(ids, mask, strict=True):  # the end of each reply is learned, too
            labels.append(token if is_own or (was_own and token == end) else -100)
            was_own = bool(is_own)
        prompt = example["prompt_ids"]
        return {"input_ids": prompt + ids, "labels": [-100] * len(prompt) + labels}

    def _imitate(self, model: Any, examples: list[dict[str, Any]]) -> list[dict[str, float]]:
        config = SFTConfig(
            **self._common(self._settings.imitated),
            per_device_train_batch_size=8,
            learning_rate=2e-3,
            lr_scheduler_type="cosine",
            warmup_steps=20,
            max_length=None,
            logging_steps=10,
        )
        trainer = SFTTrainer(
            model,
            args=config,
            processing_class=self._tokenizer,
            train_dataset=Dataset.from_list(examples),
        )
        trainer.train()
        return [
            {"update": one["step"], "loss": one["loss"]}
            for one in trainer.state.log_history
            if "loss" in one
        ]

    def _reinforce(
        self, model: Any, repairable: Container[str]
    ) -> tuple[list[dict[str, float]], dict[str, float]]:
        settings, records = self._settings, _Records()
        golds = {task.task_id: task.gold_patch for task in load_tasks(str(self._train))}

        def similarity(*, trajectory: list[dict[str, Any]], **_: Any) -> list[float]:
            return [calibrated_similarity(golds[t["task_id"]], t["patch"]) for t in trajectory]

        rollouts = EpisodeRollouts(
            self._tokenizer,
            tasks=str(self._train),
            seed=self._seed,
            on_done=records.add,
            **self._episode,
        )
        # In nearly all other tasks no edit of the list is a repair, and all attempts earn the same.
        rows = [row for row in rollouts.rows() if row["prompt"][-1]["content"] in repairable]
        config = GRPOConfig(
            **self._common(settings.reinforced),
            per_device_train_batch_size=settings.batch // _PARTS,
            gradient_accumulation_steps=_PARTS,
            num_generations=settings.group,
            max_completion_length=_MAX_REPLY,
            learning_rate=4e-4,
            lr_scheduler_type="linear",
            warmup_steps=2,
            beta=0.02,
            reward_weights=[1.0, settings.similarity],
            logging_steps=1,
        )
        trainer = GRPOTrainer(
            model,
            args=config,
            processing_class=self._tokenizer,
            train_dataset=Dataset.from_list(rows),
            rollout_func=rollouts,
            reward_funcs=[rollouts.reward, similarity],
        )
        trainer.train()
        logged = [one for one in trainer.state.log_history if "entropy" in one]
        batches = records.batches(settings.batch)
        curve = [
            {"until": one["step"], **batch, "entropy": one["entropy"]}
            for one, batch in zip(logged, batches, strict=False)
        ]
        return curve, records.turns()

    def _common(self, updates: int) -> dict[str, Any]:
        return {
            "output_dir": str(self._out / "trainer"),
            "max_steps": updates,
            "use_cpu": not torch.cuda.is_available(),
            "bf16": False,
            "gradient_checkpointing": False,
            "save_strategy": "no",
            "report_to": "none",
            "seed": self._seed,
            "disable_tqdm": True,
        }


_PARTS = 4  # of a batch, for memory
_MAX_REPLY = 16  # tokens
_IS_WRONG = 0.6  # how often the expert puts another edit in place than the right one


def _num_puts(trajectory: Trajectory) -> int:
    return sum(call.name == "put" for turn in trajectory.turns for call in turn.calls)


class _Records:
    """What GRPO's episodes were like."""

    def __init__(self) -> None:
        self._episodes: list[tuple[str, bool, str, int]] = []
        self._seconds: dict[str, float] = defaultdict(float)
        self._num_turns = 0

    def add(self, trajectory: Trajectory) -> None:
        """Takes the record of an episode as it ends."""
        number = trajectory.task_id, bool(trajectory.resolved), trajectory.patch
        self._episodes.append((*number, _num_puts(trajectory)))
        self._num_turns += len(trajectory.turns)
        calls = sum(result.duration_s for turn in trajectory.turns for result in turn.results)
        whole = sum(turn.duration_s for turn in trajectory.turns)
        grade = trajectory.grade.duration_s if trajectory.grade else 0.0
        self._seconds["tools"] += calls
        self._seconds["end"] += max(0.0, whole - calls)
        self._seconds["grade"] += grade

    def batches(self, batch: int) -> Iterable[dict[str, float]]:
        """Yields, for each update, the resolved rate and how diverse its groups are."""
        for start in range(0, len(self._episodes), batch):
            groups: dict[str, list[tuple[str, bool, str, int]]] = defaultdict(list)
            episodes = self._episodes[start : start + batch]
            for one in episodes:
                groups[one[0]].append(one)
            yield {
                "episodes": len(episodes),
                "resolved": fmean(one[1] for one in episodes),
                "puts": fmean(one[3] for one in episodes),
                "distinct_patches": fmean(len({one[2] for one in g}) for g in groups.values()),
                "groups_with_variance": fmean(
                    len({one[1] for one in g}) > 1 for g in groups.values()
                ),
            }

    def turns(self) -> dict[str, float]:
        """Returns milliseconds of the environment per turn, by what they go into."""
        per_turn = {f"{k}_ms": 1000 * s / self._num_turns for k, s in self._seconds.items()}
        return {"turns": self._num_turns, **{k: round(ms, 2) for k, ms in per_turn.items()}}


def main() -> None:
    """Trains with one seed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("train", type=Path, help="a file of tasks")
    parser.add_argument("test", type=Path, help="a file of tasks of other programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--imitated", type=int, default=240, help="updates (default 240)")
    parser.add_argument("--reinforced", type=int, default=20, help="updates (default 20)")
    parser.add_argument("--out", type=Path, help="keeps models there")
    args = parser.parse_args()
    settings = Settings(imitated=args.imitated, reinforced=args.reinforced)
    print(json.dumps(run(args.train, args.test, args.seed, settings, args.out)))


if __name__ == "__main__":
    main()
