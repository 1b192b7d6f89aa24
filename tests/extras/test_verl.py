"""verl's own agent loop and tokens on repair episodes; a script replaces its rollout server."""

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
    warnings.simplefilter("ignore")  # its imports are of deprecated modules
    agent_loop = pytest.importorskip(
        "verl.experimental.agent_loop.agent_loop", reason="needs pip install 'coding-gym[verl]'"
    )
pytest.importorskip("trl")  # its chat template of Qwen

import hydra
from omegaconf import OmegaConf
from own_harness import own_harness
from tiny_qwen import train_tokenizer
from transformers import AutoTokenizer
from verl.workers.rollout.replica import TokenOutput

import coding_gym.adapters.verl as adapter
from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.trajectory import read_trajectories

pytestmark = [pytest.mark.trainer, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

CALLS = (
    '<tool_call>\n{"name": "shell", "arguments": {"cmd": "sed -i s/+/*/ shapes.py; ls"}}\n'
    "</tool_call>",
    '<tool_call>\n{"name": "submit", "arguments": {}}\n</tool_call>',
)

Play = Callable[..., Any]


class Server:
    """Samples the calls of a script, each with its log-probabilities."""

    def __init__(self, tokenizer: Any, texts: tuple[str, ...]) -> None:
        self.prompts: list[list[int]] = []
        self._tokenizer, self._texts = tokenizer, texts

    async def generate(self, *, prompt_ids: list[int], **_: Any) -> TokenOutput:
        text = self._texts[min(len(self.prompts), len(self._texts) - 1)]
        self.prompts.append(list(prompt_ids))
        ids = [*self._tokenizer.encode(text), self._tokenizer.eos_token_id]
        steps = {"min_global_steps": len(self.prompts), "max_global_steps": len(self.prompts)}
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), extra_fields=steps)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer(["any text", *CALLS])


@pytest.fixture
def play(tokenizer: Any, tiny_row: dict[str, Any]) -> Play:
    """Plays as verl's workers do, by hydra."""

    def played(
        *texts: str,
        length: int = 4096,
        prompt_length: int = 8192,
        row: Any = None,
        target: str = "RepairAgentLoop",
        tokenizer: Any = tokenizer,
        harness: str | None = None,
        **env: Any,
    ) -> Any:
        env = {"tasks": [tiny_row], **env}
        rollout = {"prompt_length": prompt_length, "response_length": length}
        rollout["calculate_log_probs"] = True
        config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})
        server = Server(tokenizer, texts or CALLS)

        async def run() -> Any:
            loop = hydra.utils.instantiate(
                {"_target_": f"{adapter.__name__}.{target}", "env": env}
                | ({"harness": harness} if harness else {}),
                trainer_config=agent_loop.DictConfigWrap(config),
                server_manager=server,
                tokenizer=tokenizer,
                processor=None,
                hf_model_type="qwen2",
                dataset_cls=None,
                data_config=agent_loop.DictConfigWrap(config.data),
                tools=agent_loop.ToolListWrap([]),
            )
            given = {"extra_info": {"task_id": "shapes-area"}} if row is None else row
            return await loop.run({"temperature": 1.0}, raw_prompt=[], index=0, **given)

        return asyncio.run(run()), server

    return played


def test_smoke_verl(play: Play, tokenizer: Any) -> None:
    output, server = play()
    assert isinstance(output, agent_loop.AgentLoopOutput)
    assert (output.reward_score, output.num_turns) == (1.0, 5)
    sampled = [i for i, kept in zip(output.response_ids, output.response_mask, strict=True) if kept]
    assert [text.strip() for text in tokenizer.decode(sampled).split("<|im_end|>") if text] == [
        *CALLS
    ]
    shown = [
        i for i, kept in zip(output.response_ids, output.response_mask, strict=True) if not kept
    ]
    assert "shapes.py" in tokenizer.decode(shown)
    # The second prompt continues the first reply.
    whole = output.prompt_ids + output.response_ids
    assert server.prompts[1] == whole[: len(server.prompts[1])]
    assert set(output.response_logprobs) == {-0.5, 0.0}
    facts = {"resolved": 1.0, "infra_failed": 0.0, "hacked": 0.0}
    assert output.extra_fields["reward_extra_info"] == facts
    assert output.as_dict()["rm_scores"].sum().item() == 1.0
    prompt = tokenizer.decode(output.prompt_ids)
    assert '"name": "apply_patch"' in prompt
    assert "area(3, 5) gives 8" in prompt
    assert prompt.endswith("<|im_start|>assistant\n")


def test_weights_of_each_reply_are_recorded(play: Play, tmp_path: Path) -> None:
    folder = str(tmp_path / "episodes")
    output, _ = play(wrappers=[{"name": "RecordTrajectory", "kwargs": {"folder": folder}}])
    fields = output.extra_fields
    assert (fields["min_global_steps"], fields["max_global_steps"]) == (1, 2)
    (record,) = read_trajectories(folder)
    assert [turn.weight_version for turn in record.turns] == ["1", "2"]


def test_a_response_that_is_full_is_cut_and_graded(play: Play) -> None:
    output, _ = play(length=20)
    assert len(output.response_ids) == len(output.response_mask) == 20
    assert output.reward_score == 1.0
    assert output.extra_fields["stop_reason"] == "stopped"


@pytest.mark.parametrize(
    "function", ["gymnasium.core.Wrapper.reset", "gymnasium.core.Wrapper.step"]
)
def test_a_lost_episode_is_masked(
    play: Play, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function, raising(SandboxError("no room")))
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
    with pytest.raises(RuntimeError, match="the server is gone"):
        play()
    assert wait_gone(set(descendants(os.getpid())) - before, 30) == []


@pytest.fixture
def harness_options(tokenizer: Any, tmp_path: Path) -> dict[str, Any]:
    tokenizer.save_pretrained(tmp_path)
    named = AutoTokenizer.from_pretrained(tmp_path)
    return {"target": "HarnessAgentLoop", "tokenizer": named, "harness": own_harness(tmp_path)}


@pytest.mark.parametrize("prompt_length", [8192, 50])
def test_harness_plays_and_its_sampled_ids_are_trained_on(
    play: Play, harness_options: dict[str, Any], prompt_length: int
) -> None:
    texts, named = (CALLS[0], "Done."), harness_options["tokenizer"]
    output, server = play(*texts, **harness_options, prompt_length=prompt_length)
    assert len(output.prompt_ids) == min(len(server.prompts[0]), prompt_length)
    assert (output.reward_score, output.extra_fields["stop_reason"]) == (1.0, "submitted")
    ids = [*output.prompt_ids, *output.response_ids]
    mask = [0] * len(output.prompt_ids) + list(output.response_mask)
    assert len(server.prompts) == 2
    expected = [0] * len(ids)
    for prompt, text in zip(server.prompts, texts, strict=True):
        reply = [*named.encode(text), named.eos_token_id]
        assert ids[: len(prompt) + len(reply)] == [*prompt, *reply]
        expected[len(prompt) : len(prompt) + len(reply)] = [1] * len(reply)
    assert mask == expected
    assert [p == -0.5 for p in output.response_logprobs] == [bool(m) for m in output.response_mask]


def test_ids_beyond_the_response_are_not_counted_as_trained(
    play: Play, harness_options: dict[str, Any]
) -> None:
    whole, server = play("Done.", **harness_options)
    assert whole.extra_fields["trained_part"] == 1.0
    num_moved = len(server.prompts[0]) - 50
    options = {**harness_options, "prompt_length": 50, "length": num_moved + 1}
    output, _ = play("Done.", **options)
    assert output.response_mask == [0] * num_moved + [1]
    assert output.extra_fields["trained_part"] == 1 / sum(whole.response_mask)


def test_invalid_arguments_are_named(play: Play) -> None:
    with pytest.raises(InvalidArgumentError, match="task_id"):
        play(row={})
    with pytest.raises(Exception, match="max_truns"):  # hydra wraps it
        play(max_truns=3)
    with pytest.raises(Exception, match="omit sampler, got 'shuffled'"):
        play(sampler="shuffled")
