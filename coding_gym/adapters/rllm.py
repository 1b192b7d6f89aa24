"""rLLM 0.3: an agent flow, and the evaluator that reads its reward. Running it needs rLLM itself.

trainer = AgentTrainer(
    config=config,
    agent_flow=RepairFlow(max_turns=30),
    evaluator=RepairEvaluator(),
    train_dataset=train_dataset,
)

The flow runs in rLLM's process, and its sandboxes are this package's, so that rLLM provisions none.
Its requests go to rLLM's gateway, which records the sampled ids.
"""

import asyncio
from typing import Any

from coding_gym.adapters.session import Session, task_options
from coding_gym.agents.live_episode import PromptTooLongError
from coding_gym.agents.model_client import model_error, read_reply
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import import_optional

ARTIFACT = "coding_gym"
"""The key of an episode's ``artifacts`` under which its end stands."""

_INSTALL = "'rllm @ git+https://github.com/rllm-org/rllm'"
_END = "the model's context is full"


class RepairFlow:
    """Plays a repair episode for each rollout.

    A row of the dataset names its task, by ``task_id`` or ``task``. An episode that reaches the
    model's context is graded as it stands. One that our own side lost ends with rLLM's ``ERROR``,
    which ``rllm.compact_filtering`` keeps out of the training where it is enabled.

    Args:
        **session: Arguments of `coding_gym.adapters.session.Session`: ``wrappers``,
            ``control_tokens``, and those of ``CodingRepair-v0``.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used.
    """

    name = "coding_repair"
    needs_env = False

    def __init__(self, **session: Any) -> None:
        Session(**session).close()  # refuses early
        self._session = session

    async def arun(self, task: Any, config: Any) -> Any:
        """Plays an episode; rLLM fills in the steps from its gateway's traces.

        Args:
            task: rLLM's ``Task``; its metadata is the row.
            config: rLLM's ``AgentConfig``: where to ask which model.

        Returns:
            rLLM's ``Episode``, with one trajectory.

        Raises:
            InvalidArgumentError, UnknownTaskError, InvalidTaskError: The row names no task.
            openai.APIError: The model does not reply, or the report alone is longer than its
                context; rLLM plays the episode again.
        """
        types = import_optional("rllm.types", _INSTALL)
        reasons = import_optional("rllm.workflows.workflow", _INSTALL).TerminationReason
        session = Session(**self._session)
        try:
            await asyncio.to_thread(session.start, **task_options(task.metadata))
            num_replies = await _play(session, config)
            await asyncio.to_thread(session.finish, _END)
        finally:
            session.close()
        reward = session.total_reward
        # As many as there are replies: rLLM then drops the trace of a refused request.
        steps = [types.Step() for _ in range(num_replies)]
        return types.Episode(
            task=task.metadata,
            trajectories=[types.Trajectory(name=self.name, steps=steps)],
            artifacts={ARTIFACT: {**session.summary(), "reward": reward}},
            termination_reason=reasons.ERROR if reward is None else None,
        )

    def run(self, task: Any, config: Any) -> Any:
        """Does the same without an event loop."""
        return asyncio.run(self.arun(task, config))


class RepairEvaluator:
    """Gives an episode of `RepairFlow` the reward of its hidden tests, plus what wrappers add."""

    def evaluate(self, task: Any, episode: Any) -> Any:  # noqa: ARG002 - by name
        """Returns rLLM's ``EvalOutput``, with the metrics ``resolved``, ``turn``, ``tool_calls``.

        Raises:
            InvalidArgumentError: Another flow has played the episode.
        """
        types = import_optional("rllm.eval.types", _INSTALL)
        end = episode.artifacts.get(ARTIFACT)
        if end is None:
            raise InvalidArgumentError(
                f"the episode has no artifact {ARTIFACT!r}, only {sorted(episode.artifacts)}; "
                "give RepairFlow as agent_flow"
            )
        names = ("resolved", "turn", "tool_calls")
        signals = [types.Signal(name=name, value=float(end[name])) for name in names]
        return types.EvalOutput(end["reward"] or 0.0, end["resolved"], signals)


async def _play(session: Session, config: Any) -> int:
    """Asks the model for actions until the episode ends, or the model's context is full.

    Returns:
        How many replies there were.
    """
    openai, num_replies = import_optional("openai", _INSTALL), 0
    async with openai.AsyncOpenAI(
        base_url=config.base_url, api_key="none", timeout=None, max_retries=0
    ) as client:
        while not session.ended:
            request = session.chat()
            try:
                response = await client.chat.completions.create(model=config.model, **request)
            except openai.APIStatusError as problem:
                found = model_error(problem.status_code, problem.response.text)
                if num_replies and isinstance(found, PromptTooLongError):
                    break
                raise
            num_replies += 1
            action = read_reply(response.model_dump()).action
            await asyncio.to_thread(session.step, action)
    return num_replies
