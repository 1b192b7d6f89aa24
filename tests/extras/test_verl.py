"""verl's agent loop with repair episodes; a script replaces the rollout server."""

import asyncio
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from episodes import raising
from sandbox_fixtures import descendants, wait_gone

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # verl imports deprecated modules
    agent_loop = pytest.importorskip(
        "verl.experimental.agent_loop.agent_loop", reason="needs pip install 'coding-gym[verl]'"
    )
pytest.importorskip("trl")  # for its chat template of Qwen

import hydra
from omegaconf import OmegaConf
from own_harness import own_harness
from tiny_qwen import train_tokenizer
from transformers import AutoTokenizer
from verl.workers.rollout.replica import TokenOutput

import coding_gym.adapters.verl as adapter
from coding_gym.agents.model_errors import ModelError
from coding_gym.errors import GradingError, InvalidArgumentError, SandboxError

pytestmark = [pytest.mark.trainer, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

CALLS = (
    '<tool_call>\n{"name": "shell", "arguments": {"cmd": "sed -i s/+/*/ shapes.py; ls"}}\n'
    "</tool_call>",
    '<tool_call>\n{"name": "submit", "arguments": {}}\n</tool_call>',
)

Play = Callable[..., Any]


class Server:
    """Replies with the calls of a script and with log-probabilities; "…" ends a truncated reply."""

    def __init__(self, tokenizer: Any, texts: tuple[str, ...]) -> None:
        self.prompts: list[list[int]] = []
        self._tokenizer, self._texts = tokenizer, texts

    async def generate(self, *, prompt_ids: list[int], **_: Any) -> TokenOutput:
        text = self._texts[min(len(self.prompts), len(self._texts) - 1)]
        self.prompts.append(list(prompt_ids))
        ids = self._tokenizer.encode(text)
        if not text.endswith("…"):
            ids.append(self._tokenizer.eos_token_id)
        steps = {"min_global_steps": len(self.prompts), "max_global_steps": len(self.prompts)}
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), extra_fields=steps)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(["any text", *CALLS]).save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture
def play(tokenizer: Any, tiny_row: dict[str, Any]) -> Play:
    """Plays an episode through hydra, as verl's workers do."""

    def played(
        *texts: str,
        length: int = 4096,
        prompt_length: int = 8192,
        row: Any = None,
        harness: str | None = None,
        **env: Any,
    ) -> Any:
        rollout = {"prompt_length": prompt_length, "response_length": length}
        rollout["calculate_log_probs"] = True
        config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})
        server = Server(tokenizer, texts or CALLS)

        async def run() -> Any:
            loop = hydra.utils.instantiate(
                {"_target_": f"{adapter.__name__}.RepairAgentLoop", "env": {**env}},
                harness=harness,
                trainer_config=agent_loop.DictConfigWrap(config),
                server_manager=server,
                tokenizer=tokenizer,
                processor=None,
                hf_model_type="qwen2",
                dataset_cls=None,
                data_config=agent_loop.DictConfigWrap(config.data),
                tools=agent_loop.ToolListWrap([]),
            )
            columns = {"extra_info": {"task_id": "shapes-area"}} if row is None else row
            return await loop.run({"temperature": 1.0}, raw_prompt=[], index=0, **columns)

        return asyncio.run(run()), server

    def play_tiny_task(*texts: str, **options: Any) -> Any:
        return played(*texts, **{"tasks": [tiny_row]} | options)

    return play_tiny_task


def test_smoke_verl(play: Play, tokenizer: Any) -> None:
    output, server = play()
    assert isinstance(output, agent_loop.AgentLoopOutput)
    assert (output.reward_score, output.num_turns) == (1.0, 5)
    pairs = [*zip(output.response_ids, output.response_mask, strict=True)]
    sampled = [token for token, mask in pairs if mask]
    assert [text.strip() for text in tokenizer.decode(sampled).split("<|im_end|>") if text] == [
        *CALLS
    ]
    masked = [token for token, mask in pairs if not mask]
    assert "shapes.py" in tokenizer.decode(masked)
    # The second prompt continues the first reply.
    whole = output.prompt_ids + output.response_ids
    assert server.prompts[1] == whole[: len(server.prompts[1])]
    assert set(output.response_logprobs) == {-0.5, 0.0}
    metrics = {"resolved": 1.0, "infra_failed": 0.0, "hacked": 0.0}
    assert output.extra_fields["reward_extra_info"] == metrics
    assert output.as_dict()["rm_scores"].sum().item() == 1.0
    prompt = tokenizer.decode(output.prompt_ids)
    assert '"name": "apply_patch"' in prompt
    assert "area(3, 5) gives 8" in prompt
    assert prompt.endswith("<|im_start|>assistant\n")


def test_truncated_reply_does_not_end_the_episode(play: Play) -> None:
    output, _ = play(CALLS[0], "The repair…", CALLS[1])
    assert (output.extra_fields["stop_reason"], output.num_turns) == ("submitted", 7)


def test_weights_of_each_reply_are_recorded(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[Any] = []
    longest = adapter.longest_segment
    monkeypatch.setattr(
        adapter,
        "longest_segment",
        lambda record, end: records.append(record) or longest(record, end),
    )
    output, _ = play()
    fields = output.extra_fields
    assert (fields["min_global_steps"], fields["max_global_steps"]) == (1, 2)
    (record,) = records
    assert [turn.weight_version for turn in record.turns] == ["1", "2"]


def test_a_response_that_is_full_is_cut_and_graded(play: Play) -> None:
    output, _ = play(length=4)
    assert len(output.response_ids) == len(output.response_mask) == 4
    assert output.reward_score == 1.0
    assert output.extra_fields["stop_reason"] == "context"


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("coding_gym.episode.config.open_sandbox", SandboxError("no room")),
        ("coding_gym.episode.episode.grade_patch", GradingError("no room")),
    ],
)
def test_a_lost_episode_is_masked(
    play: Play, function: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function, raising(error))
    output, _ = play()
    assert set(output.response_mask) == {0}
    assert len(output.response_mask) == len(output.response_ids) == len(output.response_logprobs)
    assert output.reward_score == 0.0
    assert output.extra_fields["mask_sample"]
    assert output.extra_fields["error"] == "no room"


def test_a_failed_rollout_leaves_no_sandbox(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    play()
    before = set(descendants(os.getpid()))
    monkeypatch.setattr(Server, "generate", raising(RuntimeError("the server is gone")))
    with pytest.raises(ModelError, match="the server is gone"):
        play()
    assert wait_gone(set(descendants(os.getpid())) - before, 30) == []


@pytest.mark.parametrize("prompt_length", [8192, 50])
def test_harness_plays_and_its_sampled_ids_are_trained_on(
    play: Play, tokenizer: Any, tmp_path: Path, prompt_length: int
) -> None:
    texts = (CALLS[0], "Done.")
    output, server = play(*texts, harness=own_harness(tmp_path), prompt_length=prompt_length)
    assert len(output.prompt_ids) == min(len(server.prompts[0]), prompt_length)
    assert (output.reward_score, output.extra_fields["stop_reason"]) == (1.0, "submitted")
    ids = [*output.prompt_ids, *output.response_ids]
    mask = [0] * len(output.prompt_ids) + list(output.response_mask)
    assert len(server.prompts) == 2
    expected = [0] * len(ids)
    for prompt, text in zip(server.prompts, texts, strict=True):
        reply = [*tokenizer.encode(text), tokenizer.eos_token_id]
        assert ids[: len(prompt) + len(reply)] == [*prompt, *reply]
        expected[len(prompt) : len(prompt) + len(reply)] = [1] * len(reply)
    assert mask == expected
    assert [p == -0.5 for p in output.response_logprobs] == [bool(m) for m in output.response_mask]


def test_ids_beyond_the_response_are_not_counted_as_trained(play: Play, tmp_path: Path) -> None:
    harness = own_harness(tmp_path)
    whole, server = play("Done.", harness=harness)
    assert whole.extra_fields["trained_part"] == 1.0
    num_moved = len(server.prompts[0]) - 50
    output, _ = play("Done.", harness=harness, prompt_length=50, length=num_moved + 1)
    assert output.response_mask == [0] * num_moved + [1]
    assert output.extra_fields["trained_part"] == 1 / sum(whole.response_mask)


def test_invalid_arguments_are_named(play: Play) -> None:
    with pytest.raises(InvalidArgumentError, match="task_id"):
        play(row={})
    with pytest.raises(Exception, match="max_truns"):  # hydra wraps it
        play(max_truns=3)
    with pytest.raises(Exception, match="sampler"):
        play(sampler="shuffled")
    with pytest.raises(Exception, match="omit tokenizer"):
        play(tokenizer="hf:other")
