"""Agents without a model: generators that yield actions and receive the info of each step."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from coding_gym.episode import Episode
from coding_gym.task import Task
from coding_gym.tools import Toolset

Info = Mapping[str, Any]
Play = Generator[str, Info, None]


@dataclass(frozen=True, slots=True)
class Seat:
    """What an agent of an episode sees; a `CodingRepairEnv` has the same attributes.

    Attributes:
        task: The task that is played.
        toolset: The tools that the agent has.
        tool_format: How calls are written.
        action_space: Random actions, by its ``sample()``.
        episode: The running episode.
    """

    task: Task
    toolset: Toolset
    tool_format: str
    action_space: Any
    episode: Episode


@dataclass(frozen=True, slots=True)
class Agent:
    """Plays episodes by the texts that a policy sees.

    Attributes:
        name: The name that ``--agent`` takes.
        play: Returns the actions of an episode that was just started; each ``yield`` gives the info
            of that step. Where they end before the episode has ended, it is stopped and graded.
            Raises `InvalidArgumentError` where a tool is missing.
    """

    name: str
    play: Callable[[Seat], Play]


def next_action(play: Play, info: Info | None) -> str | None:
    """Returns the action that follows a step's info, None at first; None where there is no more."""
    try:
        return next(play) if info is None else play.send(info)
    except StopIteration:
        return None
