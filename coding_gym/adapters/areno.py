"""AReno: agent function, reward function and dataset. Needs the extra ``areno``.

# agent.py, for --agent-fn, --reward-fn-path and --dataset-loader-fn alike
from coding_gym.adapters.areno import agent_function, load_training_dataset, reward_fn

run_agent = agent_function(max_turns=30)
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from coding_gym.adapters.session import Session, task_options
from coding_gym.adapters.trl import prompt_rows
from coding_gym.agents.model_client import read_reply
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_extra

FIELD = "coding_gym"
"""The field of a record under which the ends of its episodes stand, by number of the sample."""

_END = "the model's context is full"


def agent_function(**session: Any) -> Callable[[Any, Any], Awaitable[Any]]:
    """Returns a ``run_agent(ctx, batch)`` that plays an episode for each sample of a batch.

    All episodes of a batch run at the same time. One that our own side lost is an invalid item,
    which AReno filters; one that reaches the model's context is graded as it stands.

    Args:
        **session: Arguments of `coding_gym.adapters.session.Session`: ``wrappers``,
            ``control_tokens``, and those of ``CodingRepair-v0``.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used.
    """
    Session(**session).close()  # refuses early
    return partial(_run_agent, session)


def reward_fn(record: Any) -> float:
    """Returns the reward of a sample's episode: 1.0 for resolved, plus what wrappers add.

    Args:
        record: AReno's ``RewardRecord``.

    Raises:
        InvalidArgumentError: `agent_function` has not played it.
    """
    ends = record.source_record.get(FIELD, {})
    number = str(record.metadata.get("sample_index"))
    if number not in ends:
        raise InvalidArgumentError(
            f"sample {number} has no episode, only {sorted(ends)}; give run_agent of the same file "
            "as --agent-fn"
        )
    return float(ends[number]["reward"])


def load_training_dataset(path: str) -> Any:
    """Returns the dataset for ``--dataset-path``: ``prompt`` and ``task_id`` per task.

    The prompt is a stand-in: the episode has an opening of its own.

    Args:
        path: A source of tasks, such as ``"bundled"``; ``"bundled#train"`` is one split of it.

    Raises:
        UnknownTaskError, InvalidTaskError: There are no such tasks.
        MissingDependencyError: datasets is not installed.
    """
    source, _, split = path.partition("#")
    names = [row["task_id"] for row in prompt_rows(source, split=split or None)]
    rows = [{"prompt": f"Repair {name}.", "task_id": name} for name in names]
    return import_extra("datasets", "areno").Dataset.from_list(rows)


async def _run_agent(session: Mapping[str, Any], ctx: Any, batch: Any) -> Any:
    areno = import_extra("areno.api.agentic", "areno")
    openai = import_extra("openai", "areno")
    items = list(batch.iter_samples())
    async with openai.AsyncOpenAI(
        base_url=ctx.get_base_url(), api_key=ctx.api_key, timeout=None, max_retries=0
    ) as client:
        played = await asyncio.gather(*(_play(session, client, areno, item) for item in items))
    return areno.AgentTrajectory(
        turns=[turn for turns in played for turn in turns or ()],
        invalid_items=[item for item, turns in zip(items, played, strict=True) if turns is None],
    )


async def _play(
    settings: Mapping[str, Any], client: Any, areno: Any, item: Any
) -> list[Any] | None:
    """Returns the turns of an episode, or None where our own side lost it."""
    session, turns = Session(**settings), list[Any]()
    try:
        await asyncio.to_thread(session.start, **task_options(item.record))
        while not session.ended:
            chat = session.chat()
            response = await client.chat.completions.create(model="policy", **chat)
            turns.append(areno.AgentTrajectoryTurn(item=item, response=response, **chat))
            if turns[-1].filtered:  # the proxy has not asked the model any more
                turns = _fitting(turns, getattr(response.usage, "max_sequence_len", None))
                break
            action = read_reply(response.model_dump()).action
            await asyncio.to_thread(session.step, action)
        await asyncio.to_thread(session.finish, _END)
        if session.total_reward is None:
            return None
        end = {**session.summary(), "reward": session.total_reward}
        item.record.setdefault(FIELD, {})[str(item.sample_index)] = end
        return turns
    finally:
        session.close()


def _fitting(turns: list[Any], limit: int | None) -> list[Any]:
    """Returns the turns that fit the context; AReno drops an episode for one turn that does not.

    Args:
        turns: Those of an episode; the last one was refused as too long, and has no tokens.
        limit: Most tokens of prompt and reply, as the refusal names it; None: there is none.
    """
    return [
        turn
        for turn in turns
        if not limit or len(turn.input_tokens) + len(turn.response_tokens) <= limit
    ]
