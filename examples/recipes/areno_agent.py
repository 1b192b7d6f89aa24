"""Agent, reward function and dataset for AReno, which finds the functions by name.

pip install --no-build-isolation 'areno>=0.10' openai -e .    # in a clone, with a GPU
areno train --algo grpo --ckpt Qwen/Qwen3-0.6B --dataset-path bundled#train --agent-fn THIS \
    --dataset-loader-fn THIS --reward-fn-path THIS --max-context-len 16384
"""

import asyncio
from contextlib import closing
from typing import Any

import openai
from areno.api.agentic import AgentTrajectory, AgentTrajectoryTurn
from datasets import Dataset

from coding_gym import Stop, load_tasks
from coding_gym.adapters.session import Session, play_chat, task_options
from coding_gym.agents.model_reply import read_reply

SETTINGS: dict[str, Any] = {"max_turns": 30}  # arguments of `Session`


async def run_agent(ctx: Any, batch: Any) -> Any:
    """Plays an episode for each sample; AReno excludes infrastructure failures."""
    items = list(batch.iter_samples())
    async with openai.AsyncOpenAI(base_url=ctx.get_base_url(), api_key=ctx.api_key) as client:
        replies = await asyncio.gather(*(_play(client, item) for item in items))
    invalid_items = [item for item, turns in zip(items, replies, strict=True) if turns is None]
    all_turns = [turn for turns in replies for turn in turns or ()]
    return AgentTrajectory(turns=all_turns, invalid_items=invalid_items)


async def _play(client: openai.AsyncOpenAI, item: Any) -> list[Any] | None:
    session, turns = Session(**SETTINGS), list[Any]()

    async def ask(request: dict[str, Any]) -> str:
        response = await client.chat.completions.create(model="policy", **request)
        turn = AgentTrajectoryTurn(item=item, response=response, **request)
        if turn.filtered:  # the proxy refuses a prompt that is too long
            return Stop("the model's context is full")
        turns.append(turn)
        return read_reply(response.model_dump())

    with closing(session):
        await asyncio.to_thread(session.start, **task_options(item.record))
        await play_chat(session, ask)
    item.record.setdefault("rewards", {})[str(item.sample_index)] = session.total_reward
    return None if session.total_reward is None else turns


def reward_fn(record: Any) -> float:
    """Returns the reward of a sample's episode."""
    return float(record.source_record["rewards"][str(record.metadata["sample_index"])])


def load_training_dataset(path: str) -> Dataset:
    """Returns the tasks of ``bundled`` or another source; ``bundled#train`` names a split."""
    source, _, split = path.partition("#")
    names = [task.task_id for task in load_tasks(source, split=split or None)]
    return Dataset.from_list([{"prompt": f"Repair {name}.", "task_id": name} for name in names])
