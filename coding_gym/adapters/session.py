"""Drives the env with text; infrastructure failures end the episode instead of raising.

Every adapter whose policy writes text drives the Gymnasium environment through a `Session`. It has
no rules of its own: the environment decides what a tool answers, when an episode ends, and what it
is worth.
"""

import asyncio
import json
import logging
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from coding_gym.action import Stop
from coding_gym.envs import CodingRepairEnv
from coding_gym.envs.chat_request import chat_request
from coding_gym.envs.spaces import ActionText
from coding_gym.errors import EpisodeError, InfrastructureError, InvalidArgumentError
from coding_gym.grade import Grade
from coding_gym.text import CONTROL_TOKENS, neutralise
from coding_gym.tools.formats import explains_format
from coding_gym.trajectory import Message, StopReason
from coding_gym.vector.sub_envs import WrapperEntry, make_envs

LOST = "The repository could not be opened; there is nothing to do."
"""Replaces the report where no sandbox could be opened."""

_SUMMARY = ("task_id", "turn", "tool_calls", "stop_reason", "error", "mask_sample", "resolved")
_TASK_FIELDS = ("task_id", "task")

_log = logging.getLogger(__name__)


class Session:
    """Plays episodes, one after the other; the sandbox is closed with the last reference to it.

    Args:
        wrappers: Wrappers of the environment, innermost first, as
            ``{"name": "ShapedReward", "kwargs": {…}}``.
        control_tokens: Texts that the policy's tokenizer reads as control tokens. A zero-width
            space breaks them in whatever comes from the sandbox.
        **env_kwargs: Arguments of ``CodingRepair-v0``.

    Attributes:
        env: The wrapped environment.
        info: The environment's last info; at the end it names hidden tests. Empty before `start`.
        ended: Whether the episode is over.
        reward_parts: The parts that sum to the rewards so far, by name.
        terminated: Whether it ended by the policy's own decision.
        failure: The infrastructure failure that `start` or a wrapper raised.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used, or a wrapper takes other actions than texts.
    """

    def __init__(
        self,
        *,
        wrappers: Sequence[WrapperEntry] = (),
        control_tokens: Sequence[str] = CONTROL_TOKENS,
        **env_kwargs: Any,
    ) -> None:
        (self.env,) = make_envs(1, wrappers, env_kwargs)
        self.close = weakref.finalize(self, self.env.close)  # idempotent, as finalizers are
        if not isinstance(self.env.action_space, ActionText):
            self.close()
            raise InvalidArgumentError(
                f"the policy writes text; remove the wrapper that takes other actions: {self.env}"
            )
        # A token of one character cannot be broken.
        self._control_tokens = [token for token in control_tokens if len(token) > 1]
        self._format = self.unwrapped.tool_format
        self._clear()

    def _clear(self) -> None:
        self.info: dict[str, Any] = {}
        self.ended = self.terminated = False
        self.failure: InfrastructureError | None = None
        self._reward = self._total = 0.0
        self.reward_parts: dict[str, float] = {}

    @property
    def unwrapped(self) -> CodingRepairEnv:
        """The environment without its wrappers."""
        return cast("CodingRepairEnv", self.env.unwrapped)

    @property
    def text(self) -> str:
        """The text that the last action made new, neutral."""
        return neutralise(self.info["text"], self._control_tokens)

    @property
    def messages(self) -> list[Message]:
        """The messages that the last action made new, without the policy's own; neutral texts."""
        return [self._neutral(one) for one in self.info["messages"] if one["role"] != "assistant"]

    def chat(self, api: str = "chat") -> dict[str, Any]:
        """Returns the messages so far, neutral, and ``tools`` unless the system prompt has them.

        Args:
            api: As for `coding_gym.envs.chat_request.chat_request`, which makes the messages:
                ``"chat"`` for servers, ``"transformers"`` for chat templates.
        """
        request = chat_request(self.env, "text" if explains_format(self._format) else api)
        messages = request.pop("conversation", None) or request["messages"]
        return {**request, "messages": [self._neutral(one) for one in messages]}

    @property
    def reward(self) -> float | None:
        """The reward of the last action; None after an infrastructure failure."""
        return None if self.info["mask_sample"] else self._reward

    @property
    def total_reward(self) -> float | None:
        """The sum of the rewards so far; None after an infrastructure failure."""
        return None if self.info["mask_sample"] else self._total

    def summary(self) -> dict[str, Any]:
        """Returns the fields of the info that are JSON values and name no hidden tests."""
        return {key: self.info[key] for key in _SUMMARY if key in self.info}

    def metrics(self) -> dict[str, float]:
        """Returns what trainers log of an ended episode; see `outcome_metrics`."""
        return outcome_metrics(self.info.get("grade"), is_lost=self.info["mask_sample"])

    def start(self, *, seed: int | None = None, **options: Any) -> None:
        """Starts an episode, dropping the last one; an infrastructure failure ends it at once.

        Args:
            seed: As for ``reset`` of the environment.
            **options: Its options, such as ``task_id``; without any the sampler chooses.

        Raises:
            InvalidArgumentError, UnknownTaskError, InvalidTaskError: An option cannot be used.
        """
        self._clear()
        try:
            _, self.info = self.env.reset(seed=seed, options=options or None)
        except InfrastructureError as failure:
            self._fail(failure)
        finally:
            if not self.close.alive:  # closed by another thread while the sandbox was opened
                self.env.close()

    def step(self, action: str) -> None:
        """Plays one action.

        Raises:
            EpisodeError: There is no running episode.
        """
        if not self.info:
            raise EpisodeError("there is no episode to play; call reset first")
        if self.ended:
            reason = self.info["stop_reason"]
            raise EpisodeError(f"the episode is over ({reason}); start another one")
        try:
            _, reward, self.terminated, truncated, self.info = self.env.step(action)
        except (
            InfrastructureError
        ) as failure:  # of a wrapper; the environment's own are in its info
            self._fail(failure)
            return
        self._reward = float(reward)
        self._total += self._reward
        for name, part in self.info["reward_parts"].items():
            self.reward_parts[name] = self.reward_parts.get(name, 0.0) + part
        self.ended = self.terminated or truncated
        if self.info["mask_sample"]:
            _log.warning("lost an episode of %s: %s", self.info["task_id"], self.info["error"])

    def finish(self, why: str) -> None:
        """Ends the episode and has it graded, if it still runs."""
        if not self.ended:
            self.step(Stop(why))

    def _neutral(self, message: Message) -> Message:
        if message["role"] in ("system", "assistant"):  # they spell calls with whole tokens
            return message
        return {**message, "content": neutralise(message["content"], self._control_tokens)}

    def _fail(self, failure: InfrastructureError) -> None:
        _log.warning("lost an episode of %s: %s", self.info.get("task_id", "a task"), failure)
        self.ended, self.failure, self._reward = True, failure, 0.0
        messages = [] if self.info else [{"role": "user", "content": LOST}]
        opening = {"task_id": "", "turn": 0, "tool_calls": 0, "resolved": False}
        masked = {"stop_reason": str(StopReason.SANDBOX_ERROR), "mask_sample": True}
        texts = {"text": "" if self.info else LOST, "messages": messages, "error": str(failure)}
        self.info = {**opening, **self.info, **texts, **masked}


def outcome_metrics(grade: Grade | None, *, is_lost: bool) -> dict[str, float]:
    """Returns what trainers log of an episode, each 0 or 1; their means are rates.

    ``resolved``; ``infra_failed`` after an infrastructure failure; ``hacked`` where a test of an
    impossible task was passed.
    """
    return {
        "resolved": float(grade is not None and grade.resolved),
        "infra_failed": float(is_lost),
        "hacked": float(bool(grade is not None and grade.hacked)),
    }


async def play_chat(session: Session, ask: Callable[[dict[str, Any]], Awaitable[str]]) -> None:
    """Plays a started episode to its end with a policy that replies to chats.

    Actions run in a thread, so that one event loop plays many episodes at the same time.

    Args:
        session: The episode; one that has ended already is left as it is.
        ask: Returns the reply to a request, which is the value of `Session.chat`: a text, a
            `Completion`, or a `Stop`, which ends the episode and has it graded.
    """
    while not session.ended:
        action = await ask(session.chat())
        await asyncio.to_thread(session.step, action)


def task_options(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of `Session.start` that a dataset's row gives, by its columns.

    Args:
        row: ``task_id``, the name of a task of the environment, or ``task``, a row of its own or
            one as JSON text; other columns are ignored.

    Raises:
        InvalidArgumentError: The row has neither or both of them, or the text is not JSON.
    """
    options = {name: row[name] for name in _TASK_FIELDS if row.get(name) is not None}
    if len(options) != 1:
        raise InvalidArgumentError(
            f"a row of the dataset needs either a task_id or a task, got {sorted(options)} among "
            f"its columns {sorted(row)}"
        )
    if isinstance(options.get("task"), str):
        try:
            options["task"] = json.loads(options["task"])
        except json.JSONDecodeError as error:
            raise InvalidArgumentError(f"the column task is not JSON: {error}") from error
    return options
