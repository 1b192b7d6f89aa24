"""tinker-cookbook's own rollouts and renderers on repair episodes; a script is the policy."""

import asyncio
import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from episodes import raising
from processes import descendants, wait_gone

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of packages that it imports
    rollouts = pytest.importorskip(
        "tinker_cookbook.rl.rollouts", reason="needs pip install 'coding-gym[tinker]'"
    )

from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.renderers import get_renderer
from tiny_qwen import CHATML, train_tokenizer

from coding_gym.adapters.tinker import RepairDataset, RepairGroupBuilder
from coding_gym.errors import InvalidArgumentError, SandboxError

pytestmark = [pytest.mark.trainer, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

REPAIR = '<tool_call>{"name": "shell", "arguments": {"cmd": "sed -i s/+/*/ shapes.py; ls"}}'
CALLS = (f"{REPAIR}</tool_call>", '<tool_call>{"name": "submit", "arguments": {}}</tool_call>')

Play = Callable[..., Any]


@pytest.fixture(scope="module")
def renderer() -> Any:
    tokenizer = train_tokenizer(["any text", *CALLS], chat_template=CHATML)
    return get_renderer("qwen3_instruct", tokenizer)


class Policy:
    """Replies by the number of replies before."""

    def __init__(self, tokenizer: Any) -> None:
        self.prompts: list[str] = []
        self._tokenizer = tokenizer

    async def __call__(self, model_input: Any, stop: Any, **_: Any) -> TokensWithLogprobs:
        prompt = self._tokenizer.decode(model_input.to_ints())
        self.prompts.append(prompt)
        number = prompt.count("<|im_start|>assistant") - 1
        ids = [*self._tokenizer.encode(CALLS[min(number, 1)]), *stop]
        return TokensWithLogprobs(tokens=ids, maybe_logprobs=[-0.5] * len(ids))


@pytest.fixture
def play(renderer: Any, tiny_row: dict[str, Any]) -> Play:
    def played(**env: Any) -> Any:
        session = {"tasks": [tiny_row], "tool_format": "hermes", **env}
        builder = RepairGroupBuilder("shapes-area", renderer, 2, session)
        policy = Policy(renderer.tokenizer)
        return asyncio.run(rollouts.do_group_rollout(builder, policy)), policy

    return played


def test_a_group_is_played_and_rewarded(play: Play) -> None:
    group, policy = play()
    assert group.get_total_rewards() == [1.0, 1.0]
    for trajectory in group.trajectories_G:
        assert [one.reward for one in trajectory.transitions] == [0.0, 1.0]
        last = trajectory.transitions[-1]
        assert (last.metrics["resolved"], last.metrics["turn"], last.metrics["lost"]) == (1, 2, 0)
        assert last.logs["stop_reason"] == "submitted"
    assert "area(3, 5) gives 8" in policy.prompts[0]
    assert any("shapes.py" in one and REPAIR in one for one in policy.prompts[2:])


def test_lost_episodes_are_told_apart(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gymnasium.core.Wrapper.reset", raising(SandboxError("no room")))
    group, policy = play()
    assert policy.prompts == []
    assert group.get_total_rewards() == [0.0, 0.0]
    last = group.trajectories_G[0].transitions[-1]
    assert (last.metrics["lost"], last.logs["error"]) == (1.0, "no room")
    assert "resolved" not in last.metrics


def test_a_policy_that_fails_leaves_no_sandbox(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    play()
    before = set(descendants(os.getpid()))
    monkeypatch.setattr(Policy, "__call__", raising(RuntimeError("no server")))
    with pytest.raises(RuntimeError, match="no server"):
        play()
    assert wait_gone(sorted(set(descendants(os.getpid())) - before), 30) == []


def test_a_dataset_has_a_group_per_task(renderer: Any, tiny_row: dict[str, Any]) -> None:
    dataset = RepairDataset(renderer, batch_size=1, group_size=3, tasks=[tiny_row])
    assert len(dataset) == 1
    (builder,) = dataset.get_batch(0)
    assert len(asyncio.run(builder.make_envs())) == 3
    with pytest.raises(InvalidArgumentError, match="batch_size is 2, of 1 tasks"):
        RepairDataset(renderer, batch_size=2, tasks=[tiny_row])
