"""A rollout as TRL sees it: ``reset``, ``get_reward``, and one method per tool."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from coding_gym.action import Completion
from coding_gym.adapters.session import Session, task_options
from coding_gym.calls import ToolCall
from coding_gym.errors import EpisodeError, InvalidArgumentError, SandboxUnavailableError
from coding_gym.tools import Toolset, get_toolset
from coding_gym.tools.functions import function_from_schema

FORMAT = "auto"  # TRL reads the policy's calls, and its chat template says how to write them


class Rollout:
    """One rollout at a time; TRL keeps it for the next one and never closes it.

    The methods that are tools are in the classes that `rollout_class` makes.

    Args:
        session: The episodes to play.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._was_ready = False

    @property
    def info(self) -> Mapping[str, Any]:
        """The environment's last info, for reward functions; it names hidden tests at the end."""
        return self._session.info

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
        self._session.start(**task_options(row))
        failure = self._session.failure
        if isinstance(failure, SandboxUnavailableError) and not self._was_ready:
            raise failure
        self._was_ready = self._was_ready or failure is None
        return self._session.text

    def get_reward(self) -> float | None:
        """Returns the sum of the episode's rewards, ending and grading it if it still runs.

        None where our own machinery failed; then the reward says nothing of the policy.

        Raises:
            EpisodeError: There was no `reset`, or it failed.
        """
        self._session.finish("the trainer ended the rollout")
        return self._session.total_reward

    def _part(self, name: str) -> float | None:
        """Returns a part of the reward, once the episode has ended; None as in `get_reward`."""
        return None if self.get_reward() is None else self._session.reward_parts.get(name, 0.0)

    def _play(self, call: ToolCall) -> str:
        """Plays one tool call and returns its reply; TRL displays raised errors to the model."""
        if self._session.ended:
            reason = self._session.info["stop_reason"]
            raise EpisodeError(f"the episode is over ({reason}); reply without a tool call")
        self._session.step(Completion("", calls=[call]))
        return self._session.text


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
