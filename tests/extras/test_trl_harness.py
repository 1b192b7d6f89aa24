"""One GRPO step whose episodes a harness plays: its requests reach TRL's own model."""

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
grpo = pytest.importorskip("trl.trainer.grpo_trainer")

from grpo_step import make_trainer, restored, teach  # noqa: E402
from own_harness import HARNESS, own_harness  # noqa: E402
from tiny_qwen import build_model  # noqa: E402

from coding_gym.action import Completion  # noqa: E402
from coding_gym.adapters.trl_episodes import EpisodeRollouts  # noqa: E402
from coding_gym.agents.harness_player import HarnessPlayer  # noqa: E402
from coding_gym.agents.hf import HuggingFaceAgent  # noqa: E402
from coding_gym.episode import EpisodeConfig  # noqa: E402
from coding_gym.rollout.runner import Runner  # noqa: E402
from coding_gym.trajectory import ModelCall, Trajectory, segments  # noqa: E402

# Warnings of the packages are ignored.
pytestmark = [pytest.mark.trainer, pytest.mark.filterwarnings("ignore")]

TASK = "ledgerline-month-overlap"
FIX = "sed -i 's/or date <= self.end/or date < self.end/' ledgerline/periods.py"
GROUP = 6
EPISODE: dict[str, Any] = {"task_ids": [TASK], "max_turns": 4}


def call(name: str, **arguments: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


# A repair of the task, and a failure.
SCRIPTS = [
    (call("shell", cmd=FIX), "The bug is repaired."),
    (call("shell", cmd="echo > note.txt"), "I give up."),
]


class ScriptedModel(HuggingFaceAgent):
    """Replies by a script instead of its model; each episode starts the script again."""

    script: tuple[str, ...]

    async def reply(self, *request: Any) -> tuple[Completion, ModelCall]:
        turn = request[-1]
        tokenizer = self._tokenizer
        text = self.script[min(turn, len(self.script) - 1)]
        ids = [*tokenizer.encode(text), *tokenizer.end_ids]
        return Completion(text, ids, [-0.5] * len(ids)), ModelCall(finish_reason="stop")


def play(model: HuggingFaceAgent) -> list[Trajectory]:
    config = EpisodeConfig.from_config(**EPISODE, tokenizer=model.tokenizer)
    player = HarnessPlayer(HARNESS, model)
    records: list[Trajectory] = []
    runner = Runner(config=config, player=player, concurrency=1)
    asyncio.run(runner.run([(config.tasks[0], 0)], records.append))
    return records


def demonstrate(folder: Path) -> list[Trajectory]:
    model = build_model(tokenizer_in(folder))
    records = []
    for script in SCRIPTS:
        scripted = ScriptedModel(str(folder), loaded=model)
        scripted.script = script
        records += play(scripted)
    return records


def sampled_ids(record: Trajectory, _: Any) -> list[int]:
    (sample,) = segments(record)
    return [*sample["prompt_ids"], *sample["completion_ids"]]


def tokenizer_in(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def taught(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """A tokenizer, and a model that writes one of the two episodes."""
    folder = tmp_path_factory.mktemp("tokenizers")
    return teach(demonstrate, list(chain(*SCRIPTS)), sampled_ids, folder)


@pytest.fixture
def train(taught: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Makes a trainer of the taught model whose episodes a harness plays."""
    tokenizer, model = taught

    def make(**options: Any) -> Any:
        rollouts = EpisodeRollouts(tokenizer, harness=HARNESS, **EPISODE | options)
        return make_trainer(tokenizer, model, rollouts, tmp_path, GROUP)

    with restored(model):
        yield make


def test_a_step_trains_on_the_sampled_ids(train: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled: list[tuple[list[int], list[int]]] = []
    seeds: set[int] = set()
    generate = HuggingFaceAgent.reply

    async def noted(agent: HuggingFaceAgent, ids: list[int], *rest: Any) -> Any:
        reply = await generate(agent, ids, *rest)
        sampled.append((ids, list(reply[0].token_ids)))
        _, attempt_seed, _ = rest
        seeds.add(attempt_seed)
        return reply

    batches: list[Any] = []
    compute_loss = grpo.GRPOTrainer.compute_loss

    def watched(trainer: Any, model: Any, inputs: Any, *rest: Any, **options: Any) -> Any:
        batches.append(inputs)
        return compute_loss(trainer, model, inputs, *rest, **options)

    monkeypatch.setattr(HuggingFaceAgent, "reply", noted)
    monkeypatch.setattr(grpo.GRPOTrainer, "compute_loss", watched)
    played: list[Trajectory] = []
    trainer = train(on_done=played.append)
    trainer.train()

    by_attempt = sorted(played, key=lambda one: one.attempt)
    result = trainer.rollout_func.result
    rewards = [one.total_reward for one in by_attempt]
    assert result["episode_reward"] == rewards
    assert rewards == [float("or date < self.end" in one.patch) for one in by_attempt]
    assert set(rewards) == {0.0, 1.0}
    # The batch contains the sampled ids, after the prompts that the model received.
    (batch,) = batches
    names = "prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "tool_mask"
    seen = []
    for prompt, prompt_mask, ids, mask, own in zip(*map(batch.get, names), strict=True):
        start = prompt[prompt_mask.bool()].tolist()
        text = [*start, *ids[mask.bool()].tolist()]
        flags = [0] * len(start) + own[mask.bool()].tolist()
        starts = [i for i, flag in enumerate(flags) if flag and not flags[i - 1]]
        ends = [i for i, flag in enumerate(flags, 1) if flag and not [*flags, 0][i]]
        pairs = zip(starts, ends, strict=True)
        seen += [(text[:first], text[first:end]) for first, end in pairs]
    assert sorted(seen) == sorted(sampled)
    assert len(sampled) >= 2 * GROUP
    assert len(seeds) == GROUP
    assert result["trained_part"] == [1.0] * GROUP
    assert [one.num_prefix_breaks for one in played] == [0] * GROUP
    (logged,) = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert float(logged["harness/trained"]) == 1.0


def test_example_trains(
    one_thread: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_example: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    file = own_harness(tmp_path)
    options = ["--tiny", "--steps", "1", "--group", "2", "--max-tokens", "16"]
    output = run_example("train_trl.py", *options, "--harness", file)
    assert "'harness/trained': '1'" in "".join(output)
    assert list(tmp_path.iterdir()) == [Path(file)]
