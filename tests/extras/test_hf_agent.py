"""Whole episodes of a small random model on the CPU."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from episodes import run_command
from model_server import TEMPLATE

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("trl")

from tiny_qwen import build_model, train_tokenizer  # noqa: E402

from coding_gym.action import Completion  # noqa: E402
from coding_gym.adapters.samples import training_example  # noqa: E402
from coding_gym.agents.chat import Sampling  # noqa: E402
from coding_gym.agents.hf import HuggingFaceAgent  # noqa: E402
from coding_gym.calls import ModelCall  # noqa: E402
from coding_gym.errors import InvalidArgumentError, MissingDependencyError  # noqa: E402
from coding_gym.evaluation.evaluate import evaluate  # noqa: E402
from coding_gym.tasks import load_tasks  # noqa: E402
from coding_gym.text.tokenizers import get_tokenizer  # noqa: E402
from coding_gym.trajectory import Trajectory  # noqa: E402

pytestmark = [pytest.mark.trainer, pytest.mark.usefixtures("one_thread")]

TASKS = load_tasks("bundled", limit=2)
DROPS_THOUGHTS = TEMPLATE.replace(
    'message.role + "\\n" + message.content',
    'message.role + "\\n" + message.content.split("</think>")[-1]',
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    tokenizer = train_tokenizer([task.problem_statement for task in TASKS], vocab_size=2048)
    build_model(tokenizer, num_more_rows=64).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def with_template(model: str, template: str, folder: Path) -> str:
    transformers.AutoModelForCausalLM.from_pretrained(model).save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return str(folder)


def played(agent: HuggingFaceAgent, out: Path, **options: Any) -> list[Trajectory]:
    episode = {"max_turns": 3, **options.pop("episode", {})}
    folder = evaluate(out, agent, tasks=TASKS, episode=episode, **options)
    assert list(folder.errors()) == []
    return sorted(folder.trajectories(), key=lambda record: record.task_id)


def prompts(record: Trajectory) -> Iterator[list[int]]:
    history: list[int] = []
    for turn in record.turns:
        assert turn.model_call is not None
        prompt = [*history[: turn.model_call.prefix_length], *turn.model_call.prompt_ids]
        history = [*prompt, *turn.token_ids]
        yield prompt


def test_record_has_the_tokens_that_were_sampled(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = HuggingFaceAgent(model, Sampling(max_tokens=12))
    generate, batches = transformers.Qwen2ForCausalLM.generate, []

    def watched(model: Any, **arguments: Any) -> Any:
        output = generate(model, **arguments)
        ids, mask = arguments["input_ids"], arguments["attention_mask"]
        prompts = [row[flags == 1].tolist() for row, flags in zip(ids, mask, strict=True)]
        batches.append([*zip(prompts, output[:, ids.shape[1] :].tolist(), strict=True)])
        return output

    monkeypatch.setattr(transformers.Qwen2ForCausalLM, "generate", watched)
    monkeypatch.setattr("coding_gym.agents.hf.COLLECT_S", 1.0)  # both episodes join one batch
    records = played(agent, tmp_path / "run", concurrency=2)
    assert max(map(len, batches)) == 2
    sampled = [pair for batch in batches for pair in batch]
    for record in records:
        assert record.num_prefix_breaks == 0
        assert len(record.turns) == 3
        for prompt, turn in zip(prompts(record), record.turns, strict=True):
            assert (prompt, list(turn.token_ids)) in sampled
            assert turn.exact
            assert len(turn.logprobs or ()) == len(turn.token_ids)
        example = training_example(record)
        ids = [*example["prompt_ids"], *example["completion_ids"]]
        assert ids == [*list(prompts(record))[-1], *record.turns[-1].token_ids]


def test_replies_do_not_depend_on_batch_or_run(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = HuggingFaceAgent(model, Sampling(max_tokens=12, temperature=0.7, top_k=50, top_p=0.9))
    alone = played(agent, tmp_path / "alone", concurrency=1)
    monkeypatch.setattr("coding_gym.agents.hf.COLLECT_S", 1.0)
    together = played(agent, tmp_path / "together", concurrency=2)
    replies = [[turn.token_ids for turn in record.turns] for record in alone]
    assert replies == [[turn.token_ids for turn in record.turns] for record in together]
    assert len({ids for record in replies for ids in record}) == 6


def call(name: str, **arguments: str) -> str:
    text = json.dumps({"name": name, "arguments": arguments})
    return f"<think>\nNow {name}.\n</think>\n<tool_call>\n{text}\n</tool_call>"


def test_prompts_keep_reasoning_that_a_template_drops(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = HuggingFaceAgent(with_template(model, DROPS_THOUGHTS, tmp_path / "model"))
    replies = [call("shell", cmd="ls"), call("shell", cmd="pwd"), call("submit")]
    tokenizer, texts = get_tokenizer(agent.tokenizer), iter(replies * 2)

    async def reply(prompt_ids: list[int], *_: Any) -> Completion:
        text = next(texts)
        ids = [*tokenizer.encode(text), *tokenizer.end_ids]
        call = ModelCall(finish_reason="stop", prompt_ids=tuple(prompt_ids))
        return Completion(text, ids, [-0.5] * len(ids), model_call=call)

    monkeypatch.setattr(agent, "reply", reply)
    for record in played(agent, tmp_path / "run", concurrency=1, episode={"tool_format": "hermes"}):
        assert [turn.action for turn in record.turns] == replies
        assert record.stop_reason == "submitted"
        assert record.num_prefix_breaks == 0


def test_issue_longer_than_the_context_is_unresolved(model: str, tmp_path: Path) -> None:
    short = Path(with_template(model, TEMPLATE, tmp_path / "model"))
    config = json.loads((short / "config.json").read_text())
    (short / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 64}))
    agent = HuggingFaceAgent(str(short))
    (record,) = evaluate(tmp_path / "run", agent, tasks=TASKS[:1]).trajectories()
    assert (record.stop_reason, record.resolved) == ("context", False)
    assert record.grade is not None


def test_unusable_models_and_settings_are_refused(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidArgumentError, match=r"hf download some-org/absent"):
        HuggingFaceAgent("some-org/absent")
    with pytest.raises(InvalidArgumentError, match=r"agent 'chat'"):
        HuggingFaceAgent(model, Sampling(thinking=False))
    episode = {"tokenizer": "coding_gym_16k"}
    folder = evaluate(tmp_path / "run", HuggingFaceAgent(model), tasks=TASKS[:1], episode=episode)
    (record,) = folder.errors()
    assert record.error_class == "refused"
    assert f"tokenizer='hf:{model}'" in record.error
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .*\[hf\]"):
        HuggingFaceAgent(model)


CHECK = ("check-model", "--agent", "hf", "--sampling", "max_tokens=8")


def test_check_model_asks_a_local_model(model: str) -> None:
    assert "0/4" in run_command(*CHECK, "--model", model, "--tool-format", "json", code=1)


def test_check_model_names_a_template_that_omits_the_tools(model: str, tmp_path: Path) -> None:
    folder = with_template(model, TEMPLATE.replace("if tools", "if false"), tmp_path / "model")
    printed = run_command(*CHECK, "--model", folder, "--tool-format", "auto", code=1)
    assert "omits the tools" in printed
