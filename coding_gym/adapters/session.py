"""Drives the environment with text; infrastructure failures end the episode and do not raise.

The adapters of TRL's ``environment_factory``, verifiers, NeMo Gym and OpenEnv use a `Session`. The
Gymnasium environment decides the results of tools, and the end and the reward of an episode.
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
from coding_gym.envs.coding_repair import closes_on_error
from coding_gym.envs.spaces import ActionText
from coding_gym.episode.transcript import user_message
from coding_gym.errors import EpisodeError, InfrastructureError, InvalidArgumentError
from coding_gym.grade import Grade
from coding_gym.text import CONTROL_TOKENS, neutralise
from coding_gym.tools.formats import explains_format
from coding_gym.trajectory import Message
from coding_gym.vector.sub_envs import WrapperEntry, make_envs

LOST = "The repository could not be opened; there is nothing to do."
"""The text that replaces the issue if the sandbox could not be opened."""

_SUMMARY = ("task_id", "turn", "tool_calls", "stop_reason", "error", "mask_sample", "resolved")
_TASK_FIELDS = ("task_id", "task")
_FAILURE = "an infrastructure failure ended an episode of %s: %s"

_log = logging.getLogger(__name__)


class Session:
    """Plays episodes one after another; `close` or garbage collection closes the sandbox.

    Args:
        wrappers: Wrappers of the environment, innermost first, as
            ``{"name": "ShapedReward", "kwargs": {…}}``.
        control_tokens: Texts that the policy's tokenizer reads as control tokens. In the issue and
            in results, a zero-width space splits these texts. If the policy copies this space into
            a call, the space is removed before the call runs; records and replays keep the space.
        **env_kwargs: Arguments of ``CodingRepair-v0``.

    Attributes:
        env: The wrapped environment.
        info: The environment's last info, empty before `start`; the final info names hidden tests.
        ended: Whether the episode is over.
        terminated: Whether the policy ended the episode.
        failure: The infrastructure failure that ``env.reset`` or a wrapper raised, or None.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used, or the actions of a wrapper are not text.
    """

    def __init__(
        self,
        *,
        wrappers: Sequence[WrapperEntry] = (),
        control_tokens: Sequence[str] = CONTROL_TOKENS,
        **env_kwargs: Any,
    ) -> None:
        (self.env,) = make_envs(1, wrappers, env_kwargs)
        self.close = weakref.finalize(self, self.env.close)  # idempotent
        if not isinstance(self.env.action_space, ActionText):
            self.close()
            raise InvalidArgumentError(
                f"a session needs text actions, got {self.env}; remove wrappers that change actions"
            )
        self._control_tokens = control_tokens
        self._format = self.unwrapped.tool_format
        self._clear()

    def _clear(self) -> None:
        self.info: dict[str, Any] = {}
        self.ended = self.terminated = False
        self.failure: InfrastructureError | None = None
        self._reward = self._total = 0.0

    @property
    def unwrapped(self) -> CodingRepairEnv:
        """The environment without its wrappers."""
        return cast("CodingRepairEnv", self.env.unwrapped)

    @property
    def _last_info(self) -> dict[str, Any]:
        if not self.info:
            raise EpisodeError("there is no episode yet; start an episode first")
        return self.info

    @property
    def text(self) -> str:
        """The new text after the last action, with control tokens split."""
        return neutralise(self._last_info["text"], self._control_tokens)

    @property
    def messages(self) -> list[Message]:
        """The new messages after the last action, except the policy's; control tokens are split."""
        messages = self._last_info["messages"]
        return [self._neutral(message) for message in messages if message["role"] != "assistant"]

    def chat(self) -> dict[str, Any]:
        """Returns the messages so far, and ``tools`` unless the system prompt explains them.

        The form is that of `coding_gym.envs.chat_request.chat_request`; control tokens in the
        messages are split.
        """
        request = chat_request(self.env, "text" if explains_format(self._format) else "chat")
        return {**request, "messages": [self._neutral(message) for message in request["messages"]]}

    @property
    def reward(self) -> float | None:
        """The reward of the last action; None after an infrastructure failure."""
        return None if self._last_info["mask_sample"] else self._reward

    @property
    def total_reward(self) -> float | None:
        """The sum of the rewards so far; None after an infrastructure failure."""
        return None if self._last_info["mask_sample"] else self._total

    def summary(self) -> dict[str, Any]:
        """Returns the fields of the info that are JSON values and name no hidden tests."""
        return {key: self.info[key] for key in _SUMMARY if key in self.info}

    def metrics(self) -> dict[str, float]:
        """Returns the metrics of an ended episode for a trainer's log; see `outcome_metrics`."""
        info = self._last_info
        return outcome_metrics(info.get("grade"), infra_failed=info["mask_sample"])

    def start(self, *, seed: int | None = None, **options: Any) -> None:
        """Starts an episode; the previous episode is discarded, also if an option cannot be used.

        An infrastructure failure ends the new episode immediately.

        Args:
            seed: As for ``reset`` of the environment.
            **options: Options of ``reset``, such as ``task_id``; without options the sampler
                chooses the task.

        Raises:
            InvalidArgumentError, UnknownTaskError, InvalidTaskError: An option cannot be used.
        """
        self._clear()
        try:
            with closes_on_error(self.env):
                _, self.info = self.env.reset(seed=seed, options=options or None)
            self.unwrapped.episode.split_tokens = self._control_tokens
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
        reason = self._last_info["stop_reason"]
        if self.ended:
            raise EpisodeError(f"the episode has ended ({reason}); start another episode")
        try:
            _, reward, self.terminated, truncated, self.info = self.env.step(action)
        except InfrastructureError as failure:  # raised by a wrapper, not by the env
            self._fail(failure)
            return
        self._reward = float(reward)
        self._total += self._reward
        self.ended = self.terminated or truncated
        if self.info["mask_sample"]:
            _log.warning(_FAILURE, self.info["task_id"], self.info["error"])

    def finish(self, why: str) -> None:
        """Ends a running episode and grades the tree; does nothing after the end.

        Args:
            why: The reason, which the trajectory records.
        """
        if not self.ended:
            self.step(Stop(why))

    def _neutral(self, message: Message) -> Message:
        if message["role"] in ("system", "assistant"):  # calls need their control tokens
            return message
        return {**message, "content": neutralise(message["content"], self._control_tokens)}

    def _fail(self, failure: InfrastructureError) -> None:
        _log.warning(_FAILURE, self.info.get("task_id", "a task"), failure)
        self.ended, self.failure, self._reward = True, failure, 0.0
        notice = {} if self.info else {"text": LOST, "messages": [user_message(LOST)]}
        self.info = self.unwrapped.lost_info(self.info, failure) | notice


def outcome_metrics(grade: Grade | None, *, infra_failed: bool) -> dict[str, float]:
    """Returns metrics of an episode for a trainer's log, each 0 or 1; their means are rates.

    ``resolved`` is 1 for a resolved episode, ``infra_failed`` after an infrastructure failure, and
    ``hacked`` if `Grade.hacked` is True, which is possible only for an impossible task.
    """
    return {
        "resolved": float(grade is not None and grade.resolved),
        "infra_failed": float(infra_failed),
        "hacked": float(bool(grade is not None and grade.hacked)),
    }


async def play_chat(session: Session, ask: Callable[[dict[str, Any]], Awaitable[str]]) -> None:
    """Plays a started episode to its end with a policy that replies to chats.

    Actions run in a thread, so that one event loop plays many episodes at the same time.

    Args:
        session: A started episode; if it has ended, the function returns immediately.
        ask: Returns the reply to a value of `Session.chat`: a text, a `Completion`, or a `Stop`,
            which ends the episode and grades the tree.
    """
    while not session.ended:
        action = await ask(session.chat())
        await asyncio.to_thread(session.step, action)


def refuse_sampler(settings: Mapping[str, Any]) -> None:
    """Refuses the argument ``sampler``, for trainers whose dataset chooses the tasks.

    Raises:
        InvalidArgumentError: The settings contain ``sampler``.
    """
    if "sampler" in settings:
        raise InvalidArgumentError(
            "the rows of the trainer's dataset choose the tasks and their order: omit sampler, got "
            f"{settings['sampler']!r}"
        )


def task_options(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of `Session.start` for a row of a dataset.

    Args:
        row: The columns: either ``task_id``, the name of a task of the environment, or ``task``,
            the fields of a task as an object or as JSON text. Other columns are ignored.

    Raises:
        InvalidArgumentError: The row has neither or both of the columns, or ``task`` is bad JSON.
    """
    options = {name: row[name] for name in _TASK_FIELDS if row.get(name) is not None}
    if len(options) != 1:
        columns = "both" if options else f"neither (columns: {', '.join(sorted(row))})"
        raise InvalidArgumentError(
            f"a row of the dataset must have either task_id or task, got {columns}"
        )
    if isinstance(options.get("task"), str):
        try:
            options["task"] = json.loads(options["task"])
        except json.JSONDecodeError as error:
            raise InvalidArgumentError(f"the column task must be JSON: {error}") from error
    return options
