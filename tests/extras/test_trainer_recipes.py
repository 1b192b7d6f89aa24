"""Each recipe in examples/recipes plays a repairing episode with the trainer's package."""

import asyncio
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from episodes import FIX, SUBMIT
from model_server import ChatServer, by_turn, message

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.trainer,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
TASK = "shapes-area"
IDS = [([1, 2], [3]), ([1, 2, 3, 4], [5, 6])]
REPAIR = message(calls={"shell": {"cmd": "sed -i s/+/*/ shapes.py"}}, ids=IDS[0])
DONE = message(calls={"submit": {}}, ids=IDS[1])
TOKENS = {"input_tokens": [1, 2], "response_tokens": [3], "response_logprobs": [-0.5]}

Load = Callable[[str, str], Any]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Imports a recipe; skips the test if the package of the recipe is not installed."""

    def load(name: str, package: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of packages that the recipe imports
            pytest.importorskip(package)
            monkeypatch.syspath_prepend(str(RECIPES))
            return import_module(name)

    return load


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A server that repairs, then submits; replies have the tokens that AReno's proxy adds."""
    replies = [{"areno": TOKENS, **one} for one in (REPAIR, DONE)]
    with ChatServer(by_turn(*replies)) as running:
        yield running


def test_gem_plays_an_episode_and_a_copy_of_it(load: Load, tiny_row: dict[str, Any]) -> None:
    recipe = load("gem_env", "gem")
    env = sys.modules["gem"].make(recipe.ENV_ID, tasks=[tiny_row])
    text, info = env.reset(seed=0)
    assert "area(3, 5) gives 8" in text
    assert info["task_id"] == TASK
    assert env.step(FIX)[1:4] == (0.0, False, False)
    copy = env.spawn(same_state=True)
    assert env.step(SUBMIT)[1:4] == (1.0, True, False)
    assert copy.step(SUBMIT)[1] == 1.0


def test_skyrl_plays_an_episode(load: Load, tiny_row: dict[str, Any]) -> None:
    recipe = load("skyrl_env", "skyrl_gym")
    arguments = {"env_config": {"tasks": [tiny_row]}, "extras": {"task_id": TASK, "max_turns": 2}}
    env = sys.modules["skyrl_gym"].make(recipe.ENV_CLASS, **arguments)
    opening, _ = env.init([])
    assert [message["role"] for message in opening] == ["system", "user"]
    assert env.step(FIX)["observations"][0]["role"] == "tool"
    last = env.step(SUBMIT)
    assert (last["reward"], last["done"], last["metadata"]["resolved"]) == (1.0, True, True)
    env.close()


def test_tinker_plays_a_group(load: Load, tiny_row: dict[str, Any]) -> None:
    recipe = load("tinker_envs", "tinker_cookbook.rl.rollouts")
    from tinker_cookbook.completers import TokensWithLogprobs
    from tinker_cookbook.renderers import get_renderer
    from tinker_cookbook.rl.rollouts import do_group_rollout
    from tiny_qwen import CHATML, train_tokenizer

    calls = [f"<tool_call>{call}</tool_call>" for call in (FIX, SUBMIT)]
    tokenizer = train_tokenizer(["any text", *calls], chat_template=CHATML)
    renderer = get_renderer("qwen3_instruct", tokenizer)

    async def policy(chat: Any, stop: Any, **_: Any) -> Any:
        prompt = tokenizer.decode(chat.to_ints())
        reply = calls[prompt.count("<|im_start|>assistant") - 1]
        ids = [*tokenizer.encode(reply), *stop]
        return TokensWithLogprobs(tokens=ids, maybe_logprobs=[-0.5] * len(ids))

    session = {"tasks": [tiny_row], "tool_format": "hermes"}
    group = recipe.RepairGroup(TASK, renderer, 2, **session)
    played = asyncio.run(do_group_rollout(group, policy))
    assert played.get_total_rewards() == [1.0, 1.0]
    assert played.trajectories_G[0].transitions[-1].metrics == {"resolved": 1.0, "lost": 0.0}


def test_areno_plays_and_rewards_each_sample(
    load: Load, tiny_row: dict[str, Any], server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = load("areno_agent", "areno.api.agentic")
    from areno.api.agentic import AgentBatch, load_agent_run_fn
    from areno.api.rewards import RewardRecord, load_reward_fn

    for load_function in (load_agent_run_fn, load_reward_fn):
        assert callable(load_function(str(RECIPES / "areno_agent.py")))
    monkeypatch.setitem(recipe.SETTINGS, "tasks", [tiny_row])
    batch = AgentBatch([{"task_id": TASK}], ["Repair it."], [[1]], n_samples=2)
    proxy = SimpleNamespace(api_key="key", get_base_url=lambda: server.base_url)
    played = asyncio.run(recipe.run_agent(proxy, batch))
    assert [turn.item.sample_index for turn in played.turns] == [0, 0, 1, 1]
    assert played.invalid_items == []
    sample = {"source_record": batch.records[0], "metadata": {"sample_index": 1}}
    record = RewardRecord(prompt="", completion="", **sample)
    assert recipe.reward_fn(record) == 1.0
