"""The protocol of agents, and the running episode that an agent plays."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from coding_gym.action import Completion
from coding_gym.agents.model_errors import PromptTooLongError
from coding_gym.episode import Episode, Limits
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import SandboxSpec
from coding_gym.trajectory import StopReason, Turn

Complete = Callable[[Mapping[str, Any]], Awaitable[Completion]]
"""Returns the reply to a request in the form of OpenAI's chat completions."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Player(Protocol):
    """The object that plays an agent's episodes, many at the same time.

    Attributes:
        name: The agent's name in records.
        model: The model's name; "" without a model.
    """

    name: str
    model: str

    async def play(self, live: "LiveEpisode") -> None:
        """Starts and plays an episode.

        The agent awaits `LiveEpisode.start`, and then `LiveEpisode.step` until the episode has
        ended. If the agent returns before the end, the episode is stopped and the tree is graded.

        Raises:
            ModelError: The model or its server failed; the attempt has no verdict.
        """
        ...

    def chat(self, seed: int) -> Complete:  # noqa: ARG002 - only agents with a model use it
        """Returns the function by which the agent's model replies to the requests of a harness.

        The agent's sampling settings take precedence over the settings in a request, except that
        the smaller value of ``max_tokens`` applies.

        Args:
            seed: The seed of the attempt.

        Raises:
            InvalidArgumentError: The agent has no model.
        """
        raise InvalidArgumentError(f"a harness needs an agent with a model, got {self.name!r}")

    def describe(self) -> Mapping[str, Any]:
        """Returns the agent's settings for the run's config, as JSON values without secrets."""
        return {}

    def check(self, limits: Limits) -> None:  # noqa: ARG002 - most agents enforce all limits
        """Raises InvalidArgumentError for limits that the agent cannot enforce."""
        return

    async def close(self) -> None:
        """Frees connections; idempotent. The agent can play again."""
        return


class LiveEpisode:
    """An episode whose blocking calls run on threads, so that agents can be coroutines.

    Args:
        episode: The episode.
        threads: The threads that run commands and grades.
        seed: Seed of this attempt, different for every task and attempt.
        attempt: Number of the attempt at the task, from 0.
        on_turn: Called with every turn; a turn of a harness has no results yet.

    Attributes:
        episode, seed, attempt, on_turn: As the arguments.
        start_s: The time of `time.perf_counter` when the sandbox was opened.
        error: The failure of a harness whose tree was graded, or "".
    """

    def __init__(
        self,
        episode: Episode,
        threads: Executor,
        seed: int = 0,
        attempt: int = 0,
        on_turn: Callable[[Turn], None] = lambda _: None,
    ) -> None:
        self.episode = episode
        self.seed, self.attempt = seed, attempt
        self.on_turn = on_turn
        self.start_s = time.perf_counter()
        self.error = ""
        self._threads = threads

    @property
    def ended(self) -> bool:
        """Whether the episode is over."""
        return self.episode.ended

    async def play(self, player: Player) -> None:
        """Lets an agent play the episode to its end, and grades the tree."""
        try:
            await player.play(self)
        except PromptTooLongError as problem:
            text = f"the prompt is longer than the model's context: {problem}"
            await self.stop(text, StopReason.CONTEXT)
        if not self.ended:
            await self.stop(f"the agent {player.name} stopped")

    async def start(self, change: Callable[[SandboxSpec], SandboxSpec] = lambda spec: spec) -> None:
        """Opens the sandbox, as `Episode.start` does; ends the episode if there is no sandbox."""
        await self.in_thread(self.episode.start, change)
        self.start_s = time.perf_counter()  # installations are not part of the duration
        if self.episode.error:
            await self.stop("the sandbox could not be opened")

    async def step(self, action: str) -> Turn:
        """Plays one action; see `Episode.step`."""
        turn = await self.in_thread(self.episode.step, action)
        self.on_turn(turn)
        return turn

    async def stop(self, text: str, reason: StopReason = StopReason.STOPPED) -> None:
        """Ends and grades the episode; see `Episode.stop`."""
        self.on_turn(await self.in_thread(self.episode.stop, text, reason))

    async def in_thread(
        self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Runs a blocking function on one of the threads and returns its result."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(function, *args, **kwargs))
