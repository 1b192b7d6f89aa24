"""tinker-cookbook: environments of tokens, in groups. Importing this needs the extra ``tinker``.

    builder = RepairGroupBuilder("cronwise-working-days", renderer, group_size=8)
    group = await do_group_rollout(builder, policy)

`RepairDataset` gives a builder per task, for the cookbook's training loop.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from coding_gym.action import Completion
from coding_gym.adapters.session import Session
from coding_gym.errors import InvalidArgumentError
from coding_gym.optional import missing_extra
from coding_gym.tasks import load_tasks
from coding_gym.text import control_tokens

try:
    import tinker
    from tinker_cookbook.rl.types import (
        ActionExtra,
        Env,
        EnvGroupBuilder,
        InitialObservationOverflow,
        RLDataset,
        StepResult,
    )
except ImportError as error:
    raise missing_extra("tinker-cookbook", "tinker") from error

_METRICS = ("turn", "tool_calls")


class RepairEnv(Env):
    """One repair episode, from tokens to tokens; used once.

    The whole chat is rendered for every turn, with replies as they were written and results as
    messages of the user.

    Args:
        renderer: The cookbook's renderer of the model.
        task_id: The task.
        **session: Arguments of `coding_gym.adapters.session.Session`.
    """

    def __init__(self, renderer: Any, task_id: str, **session: Any) -> None:
        tokens = control_tokens(renderer.tokenizer)
        self._renderer, self._task_id = renderer, task_id
        self._session = Session(**{"control_tokens": tokens, **session})

    async def initial_observation(self) -> Any:
        """Starts the episode and returns its opening as tokens, and where replies stop.

        Raises:
            UnknownTaskError, InvalidTaskError: The task cannot be used.
        """
        await asyncio.to_thread(self._session.start, task_id=self._task_id)
        if self._session.ended:  # it could not be opened
            return InitialObservationOverflow(0.0, self._metrics(), self._logs())
        return self._observation(), self._renderer.get_stop_sequences()

    async def step(self, action: list[int], *, extra: ActionExtra | None = None) -> StepResult:  # noqa: ARG002 - by name
        """Plays the reply that the tokens spell.

        The reward is 0.0 where our own side failed, and the metric ``lost`` is 1.0.
        """
        session = self._session
        await asyncio.to_thread(session.step, Completion(self._spelled(action), action))
        return StepResult(
            reward=session.reward or 0.0,
            episode_done=session.ended,
            next_observation=tinker.ModelInput.empty() if session.ended else self._observation(),
            next_stop_condition=self._renderer.get_stop_sequences(),
            metrics=self._metrics() if session.ended else {},
            logs=self._logs() if session.ended else {},
        )

    def close(self) -> None:
        """Frees the sandbox; idempotent."""
        self._session.close()

    def _observation(self) -> Any:
        return self._renderer.build_generation_prompt(self._session.chat("text")["messages"])

    def _spelled(self, action: Sequence[int]) -> str:
        text = str(self._renderer.tokenizer.decode(list(action)))
        for stop in self._renderer.get_stop_sequences():
            end = stop if isinstance(stop, str) else self._renderer.tokenizer.decode([stop])
            text = text.removesuffix(end)
        return text

    def _metrics(self) -> dict[str, float]:
        info = self._session.info
        is_lost = bool(info["mask_sample"])
        rate = {} if is_lost else {"resolved": float(info["resolved"])}
        return {name: float(info[name]) for name in _METRICS} | rate | {"lost": float(is_lost)}

    def _logs(self) -> dict[str, str]:
        info = self._session.info
        return {name: str(info[name] or "") for name in ("task_id", "stop_reason", "error")}


class RepairGroupBuilder(EnvGroupBuilder):
    """Makes the environments of one task.

    Args:
        task_id: The task.
        renderer: The cookbook's renderer of the model.
        group_size: How many.
        session: Arguments of `coding_gym.adapters.session.Session`.
    """

    def __init__(
        self,
        task_id: str,
        renderer: Any,
        group_size: int = 8,
        session: Mapping[str, Any] | None = None,
    ) -> None:
        self.task_id, self.renderer, self.group_size = task_id, renderer, group_size
        self.session = dict(session or {})
        self._envs: list[RepairEnv] = []

    async def make_envs(self) -> Sequence[Env]:
        """Makes the environments; nothing is opened yet."""
        self._envs = [
            RepairEnv(self.renderer, self.task_id, **self.session) for _ in range(self.group_size)
        ]
        return self._envs

    async def cleanup(self) -> None:
        """Frees all sandboxes of the group; idempotent."""
        envs, self._envs = self._envs, []
        await asyncio.gather(*(asyncio.to_thread(env.close) for env in envs))

    def logging_tags(self) -> list[str]:
        """Returns the tag of these metrics in logs."""
        return ["coding_repair"]


class RepairDataset(RLDataset):
    """Batches of tasks, each with a group of episodes.

    Args:
        renderer: The cookbook's renderer of the model.
        batch_size: Tasks of a batch.
        group_size: Episodes of a task.
        split: Only tasks of this split.
        **session: Arguments of `coding_gym.adapters.session.Session`.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used, or there are fewer tasks than ``batch_size``.
    """

    def __init__(
        self,
        renderer: Any,
        *,
        batch_size: int,
        group_size: int = 8,
        split: str | None = None,
        **session: Any,
    ) -> None:
        Session(**session).close()  # refuses early
        tasks = load_tasks(session.get("tasks", "bundled"), split=split)
        if len(tasks) < batch_size:
            raise InvalidArgumentError(f"batch_size is {batch_size}, of {len(tasks)} tasks")
        self._batch_size = batch_size
        self._builders = [
            RepairGroupBuilder(task.task_id, renderer, group_size, session) for task in tasks
        ]

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        """Returns the builders of a batch."""
        return self._builders[index * self._batch_size : (index + 1) * self._batch_size]

    def __len__(self) -> int:
        return len(self._builders) // self._batch_size
