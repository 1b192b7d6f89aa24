"""Repair episodes as groups of token environments for tinker-cookbook.

    pip install tinker-cookbook -e .    # in a clone
    group = await do_group_rollout(RepairGroup("cronwise-working-days", renderer), policy)

Choose a ``tool_format`` that the model knows, such as ``hermes`` for Qwen: the system prompt then
explains the tools. An infrastructure failure ends the episode with the metric ``lost``.
"""

import asyncio
from typing import Any

import tinker
from tinker_cookbook.rl import types

from coding_gym.action import Completion
from coding_gym.adapters.session import Session
from coding_gym.text import control_tokens


class RepairEnv(types.Env):
    """One episode with token actions; every turn renders the whole chat to tokens."""

    def __init__(self, renderer: Any, task_id: str, **session: Any) -> None:
        self._renderer, self._task_id = renderer, task_id
        self._decode, self._stops = renderer.tokenizer.decode, renderer.get_stop_sequences()
        self.session = Session(control_tokens=control_tokens(renderer.tokenizer), **session)

    async def initial_observation(self) -> Any:
        """Starts the episode and returns its prompt as tokens."""
        await asyncio.to_thread(self.session.start, task_id=self._task_id)
        if self.session.ended:  # no sandbox could be opened
            return types.InitialObservationOverflow(0.0, {"lost": 1.0}, {})
        return self._chat(), self._stops

    async def step(self, action: list[int], *, extra: Any = None) -> Any:  # noqa: ARG002 - by name
        """Decodes the tokens and plays the reply."""
        text = self._decode(action)
        for stop in self._stops:
            text = text.removesuffix(stop if isinstance(stop, str) else self._decode([stop]))
        await asyncio.to_thread(self.session.step, Completion(text, action))
        info, reward = self.session.info, self.session.reward or 0.0
        if not self.session.ended:
            return types.StepResult(reward, False, self._chat(), self._stops)
        metrics = {"resolved": float(info["resolved"]), "lost": float(info["mask_sample"])}
        return types.StepResult(reward, True, tinker.ModelInput.empty(), self._stops, metrics)

    def _chat(self) -> Any:
        return self._renderer.build_generation_prompt(self.session.chat()["messages"])


class RepairGroup(types.EnvGroupBuilder):
    """Episodes of one task; ``session`` are arguments of `Session`."""

    def __init__(self, task_id: str, renderer: Any, group_size: int = 8, **session: Any) -> None:
        self._envs = [RepairEnv(renderer, task_id, **session) for _ in range(group_size)]

    async def make_envs(self) -> Any:
        """Returns the environments; garbage collection of an environment closes its sandbox."""
        return self._envs
