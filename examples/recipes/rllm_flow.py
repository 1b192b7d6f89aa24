"""Repair episodes as an agent flow of rLLM, with its evaluator.

    pip install openai -e .    # in a clone; rLLM itself installs from its repository
    AgentTrainer(agent_flow=RepairFlow(max_turns=30), evaluator=RepairEvaluator(), …)

Rows need the columns ``task_id`` and ``question``. If vLLM does not parse tool calls, set
``tool_format="hermes"``. Set ``limits={"max_tokens": …}`` below the model's context, so that an
episode ends and is graded before the server refuses a request.
"""

import asyncio
from contextlib import closing
from typing import Any

import openai
from rllm.eval.types import EvalOutput, Signal
from rllm.types import Episode, Step, Trajectory
from rllm.workflows.workflow import TerminationReason

from coding_gym.adapters.session import Session, play_chat, task_options
from coding_gym.agents.model_reply import read_reply


class RepairFlow:
    """Plays one episode per task through rLLM's gateway; arguments are those of `Session`."""

    name = "coding_repair"

    def __init__(self, **settings: Any) -> None:
        self._settings = settings

    async def arun(self, task: Any, config: Any) -> Episode:
        """Plays an episode; rLLM repeats it if the model does not reply."""
        session, steps = Session(**self._settings), list[Step]()
        client = openai.AsyncOpenAI(base_url=config.base_url, api_key="none", max_retries=0)

        async def ask(request: dict[str, Any]) -> str:
            response = await client.chat.completions.create(model=config.model, **request)
            steps.append(Step())  # one per reply: rLLM drops the trace of a refused request
            return read_reply(response.model_dump()).action

        with closing(session):
            await asyncio.to_thread(session.start, **task_options(task.metadata))
            await play_chat(session, ask)
        end = {**session.summary(), "reward": session.total_reward or 0.0}
        reason = TerminationReason.ERROR if end["mask_sample"] else None
        played = [Trajectory(name=self.name, steps=steps)]
        return Episode(task.metadata, played, artifacts=end, termination_reason=reason)


class RepairEvaluator:
    """Reads the reward that `RepairFlow` stored in the episode."""

    def evaluate(self, task: Any, episode: Episode) -> EvalOutput:  # noqa: ARG002 - by name
        """Returns the reward, with the number of turns as a metric."""
        end = episode.artifacts
        return EvalOutput(end["reward"], end["resolved"], [Signal("turn", float(end["turn"]))])
