"""A rollout as TRL sees it: ``reset``, ``get_reward``, and one method per tool."""

import json
import weakref
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import gymnasium as gym

from coding_gym.action import Stop
from coding_gym.calls import ToolCall
from coding_gym.errors import (
    EpisodeError,
    InvalidArgumentError,
    MachineryError,
    SandboxUnavailableError,
)
from coding_gym.text import Neutraliser
from coding_gym.tools import Toolset, get_toolset
from coding_gym.tools.formats import render_calls
from coding_gym.tools.functions import function_from_schema
from coding_gym.trajectory import StopReason

FORMAT = "auto"  # TRL reads the policy's calls, and its chat template says how to write them
TASK_COLUMNS = ("task_id", "task")


class Rollout:
    """One rollout at a time; TRL keeps it for the next one and never closes it.

    The methods that are tools are in the classes that `rollout_class` makes.

    Args:
        env: The environment to play, whose actions are texts.
        neutraliser: Breaks control tokens in texts from the sandbox.
    """

    def __init__(self, env: gym.Env[Any, str], neutraliser: Neutraliser) -> None:
        self._env = env
        self._neutraliser = neutraliser
        self._info: dict[str, Any] = {}
        self._reward = 0.0
        self._ended = False
        self._was_ready = False
        weakref.finalize(self, env.close)

    @property
    def info(self) -> Mapping[str, Any]:
        """The environment's last info, for reward functions; it names hidden tests at the end."""
        return self._info

    def reset(self, **row: Any) -> str:
        """Starts an episode, dropping the last one, and returns the report.

        A failure of the machinery is not raised, since that would end the training: the report is
        returned, or a text that says so, and the rollout is masked.

        Args:
            **row: The dataset's columns; ``task_id`` or ``task`` (a row, or one as JSON) is used.

        Raises:
            InvalidArgumentError: The row has neither or both of them.
            UnknownTaskError, InvalidTaskError: It names no task, or a malformed one.
            SandboxUnavailableError: This machine cannot run the sandbox, and never did so far.
        """
        self._reward, self._ended, self._info = 0.0, False, {}
        try:
            _, self._info = self._env.reset(options=_options(row))
        except MachineryError as failure:
            if isinstance(failure, SandboxUnavailableError) and not self._was_ready:
                raise
            self._fail(failure)
            return "The repository could not be opened; there is nothing to do."
        self._was_ready = True
        return self._neutraliser.escape(self._info["text"])

    def get_reward(self) -> float | None:
        """Returns the sum of the episode's rewards, ending and grading it if it still runs.

        None where our own machinery failed; then the reward says nothing of the policy.

        Raises:
            EpisodeError: There was no `reset`, or it failed.
        """
        if not self._ended:
            self._step(Stop("the trainer ended the rollout"))
        return None if self._info["mask_sample"] else self._reward

    def _play(self, call: ToolCall) -> str:
        """Plays one tool call and returns its reply; TRL displays raised errors to the model."""
        if self._ended:
            reason = self._info["stop_reason"]
            raise EpisodeError(f"the episode is over ({reason}); reply without a tool call")
        # Not as JSON, which would write some tokens otherwise: <|"|>, for one.
        arguments = self._neutraliser.restore_all(call.arguments)
        self._step(render_calls([ToolCall(call.name, arguments)], FORMAT))
        return self._neutraliser.escape(self._info["text"])

    def _step(self, action: str) -> None:
        if not self._info:
            raise EpisodeError("there is no episode to play; call reset first")
        try:
            _, reward, terminated, truncated, self._info = self._env.step(action)
        except MachineryError as failure:  # of a wrapper; the environment's own are in its info
            self._fail(failure)
            return
        self._reward += float(reward)
        self._ended = terminated or truncated

    def _fail(self, failure: MachineryError) -> None:
        self._ended = True
        masked = {"text": "", "stop_reason": str(StopReason.SANDBOX_ERROR), "mask_sample": True}
        self._info = {**self._info, **masked, "error": str(failure)}


@cache
def rollout_class(toolset: str) -> type[Rollout]:
    """Returns the class of rollouts with a toolset: its methods are the tools.

    Its name, ``CodingRepair_`` and the toolset's, is that of TRL's reward column.

    Raises:
        UnknownNameError: There is no such toolset.
        InvalidArgumentError: A tool cannot be a method, or not a public one.
    """
    return type(f"CodingRepair_{toolset}", (Rollout,), _methods(get_toolset(toolset)))


def _methods(toolset: Toolset) -> dict[str, Callable[..., str]]:
    methods = {}
    for schema in toolset.schemas:
        name = schema["function"]["name"]
        if hasattr(Rollout, name) or name.startswith("_"):
            raise InvalidArgumentError(
                f"toolset {toolset.name!r} has a tool {name!r}, which TRL does not take for one"
            )
        methods[name] = function_from_schema(schema, Rollout._play, is_method=True)
    return methods


def _options(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the reset options of a row's task, which all rollouts of a group must share."""
    options = {name: row[name] for name in TASK_COLUMNS if row.get(name) is not None}
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
