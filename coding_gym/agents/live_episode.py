"""The protocol of agents, and the running episode that an agent plays."""

import asyncio
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

import coding_gym
from coding_gym.action import Completion, Stop
from coding_gym.episode import Episode, Limits
from coding_gym.errors import CodingGymError
from coding_gym.task import Task
from coding_gym.trajectory import ModelCall, StopReason, Turn

Actions = Callable[[Episode, int], Iterator[str]]
"""A function from an episode and the attempt's seed to the actions of an agent without a model."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class ModelError(CodingGymError, RuntimeError):
    """A model's server failed, so the attempt has no verdict.

    Args:
        problem: The message.
        error_class: One of `coding_gym.trajectory.ERROR_CLASSES`.
    """

    def __init__(self, problem: str, error_class: str = "model") -> None:
        super().__init__(problem)
        self.error_class = error_class


class RequestRefusedError(ModelError):
    """The model's server refuses this request as invalid."""


class PromptTooLongError(ModelError):
    """The prompt is longer than the model's context; the episode ends and is graded."""


_SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD")  # in names of environment variables


def public_text(text: str) -> str:
    """Returns an error's text without API keys and folders of this machine, for records."""
    for name, value in os.environ.items():
        if len(value) >= 8 and _SECRET.search(name):
            text = text.replace(value, "[key]")
    for folder in sorted(sys.path, key=len, reverse=True):  # in a traceback
        text = text.replace(f'File "{folder}/', 'File "')
    text = text.replace(f"{Path(coding_gym.__file__).parents[1]}/", "")
    home = os.environ.get("HOME", "")
    return text.replace(f"{home}/", "~/") if len(home) > 1 else text


class LiveEpisode:
    """An episode whose blocking calls run on threads, so that agents can be coroutines.

    Args:
        episode: The episode.
        threads: The threads that run commands and grades.
        seed: Seed of this attempt, different for every task and attempt.
        attempt: Number of the attempt at the task, from 0.
        on_call: Called with every request to the model.
        on_turn: Called with every turn; a turn of a harness has no results yet.

    Attributes:
        model_calls: The model request of each turn so far; None for a turn without a request.
        num_prefix_breaks: Number of prompts that do not continue the previous prompt and reply;
            None until the ids of a prompt are known.
        on_call, on_turn: As the arguments.
        chat: Fields of the record that replace the episode's fields.
    """

    def __init__(
        self,
        episode: Episode,
        threads: Executor,
        seed: int = 0,
        attempt: int = 0,
        on_call: Callable[[ModelCall], None] = lambda _: None,
        on_turn: Callable[[Turn], None] = lambda _: None,
    ) -> None:
        self.episode = episode
        self.seed, self.attempt = seed, attempt
        self.model_calls: list[ModelCall | None] = []
        self.num_prefix_breaks: int | None = None
        self.chat: dict[str, Any] = {}
        self._threads = threads
        self.on_call, self.on_turn = on_call, on_turn
        self._history: tuple[int, ...] = ()  # ids of the last prompt and its reply

    @property
    def task(self) -> Task:
        """The task."""
        return self.episode.task

    @property
    def ended(self) -> bool:
        """Whether the episode is over."""
        return self.episode.ended

    async def play(self, player: "Player") -> None:
        """Lets an agent play the episode to its end, and grades the tree."""
        try:
            if not self.episode.error:
                await player.play(self)
        except PromptTooLongError as problem:
            await self.step(Stop(f"the prompt is longer than the model's context: {problem}"))
            if self.episode.stop_reason is StopReason.STOPPED:  # no infrastructure failure
                self.chat["stop_reason"] = StopReason.CONTEXT
        if not self.ended:
            await self.step(Stop(f"the agent {player.name} stopped"))

    async def step(
        self, action: str, call: ModelCall | None = None, prompt_ids: Sequence[int] = ()
    ) -> Turn:
        """Plays one action; the action that ends the episode also grades it.

        Args:
            action: As for `coding_gym.episode.Episode.step`.
            call: The request to the model whose reply is the action.
            prompt_ids: The token ids of that request's prompt, if known.
        """
        self.count(action, call, prompt_ids)
        turn = await self.in_thread(self.episode.step, action)
        self.on_turn(turn)
        return turn

    def count(
        self, action: str, call: ModelCall | None = None, prompt_ids: Sequence[int] = ()
    ) -> None:
        """Records the request of a turn without running its calls; arguments as for `step`."""
        if call is not None:
            if prompt_ids and isinstance(action, Completion) and action.token_ids:
                call = self._with_prompt(call, tuple(prompt_ids), action.token_ids)
            self.on_call(call)
        self.model_calls.append(call)

    def _with_prompt(
        self, call: ModelCall, prompt: tuple[int, ...], reply: tuple[int, ...]
    ) -> ModelCall:
        history = self._history
        length = len(history)
        if prompt[:length] != history:
            pairs = enumerate(zip(prompt, history, strict=False))
            length = next((i for i, (new, old) in pairs if new != old), min(len(prompt), length))
        is_break = length < len(history)
        self.num_prefix_breaks = (self.num_prefix_breaks or 0) + is_break
        self._history = (*prompt, *reply)
        return replace(call, prefix_length=length, prompt_ids=prompt[length:])

    async def in_thread(
        self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Runs a blocking function on one of the threads and returns its result."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(function, *args, **kwargs))


class Player(Protocol):
    """Plays whole episodes of a run, many at the same time.

    Attributes:
        name: The agent's name in records.
        model: The model's name; "" without a model.
    """

    name: str
    model: str

    def describe(self) -> Mapping[str, Any]:
        """Returns the agent's settings for the run's config, as JSON values without secrets."""
        return {}

    def check(self, limits: Limits) -> None:  # noqa: ARG002 - most agents enforce all limits
        """Raises InvalidArgumentError for limits that the agent cannot enforce."""
        return

    async def start(self, live: LiveEpisode) -> None:
        """Starts an episode, as `Episode.start` does."""
        await live.in_thread(live.episode.start)

    async def play(self, live: LiveEpisode) -> None:
        """Plays an episode that was just started.

        If the agent returns before the end, the episode is stopped and the tree is graded.

        Raises:
            ModelError: The model's server failed; the attempt has no verdict.
        """
        ...

    async def close(self) -> None:
        """Frees connections; idempotent."""
        return


class ActionsPlayer(Player):
    """Plays the actions of an agent without a model, such as ``gold``.

    Args:
        name: The agent's name in records.
        actions: Yields the actions of an episode that was just started; the second argument is
            the seed of the attempt.
    """

    model = ""

    def __init__(self, name: str, actions: Actions) -> None:
        self.name = name
        self.actions = actions

    async def play(self, live: LiveEpisode) -> None:
        """Plays the actions until the last one, or until the episode ends."""
        actions = iter(self.actions(live.episode, live.seed))
        while not live.ended:
            action = await live.in_thread(next, actions, None)
            if action is None:
                break
            await live.step(action)
