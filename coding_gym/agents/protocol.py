"""The protocol of agents: a generator that yields actions and receives the info of each step."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from coding_gym.task import Task
from coding_gym.tools import Toolset

Info = Mapping[str, Any]
Play = Generator[str, Info, None]


@dataclass(frozen=True, slots=True)
class Seat:
    """What an agent for an episode is made from; a `CodingRepairEnv` has the same attributes.

    Attributes:
        task: The task that is played.
        toolset: The tools that the agent has.
        tool_format: How calls are written.
        action_space: Random actions, by its ``sample()``.
    """

    task: Task
    toolset: Toolset
    tool_format: str
    action_space: Any


class Agent(Protocol):
    """Plays episodes by the texts that a policy sees."""

    @property
    def name(self) -> str:
        """The name that ``--agent`` takes."""
        ...

    def play(self, info: Info) -> Play:
        """Plays one episode.

        Args:
            info: What ``reset`` returned; ``info["text"]`` is the problem statement.

        Yields:
            Actions; each ``yield`` gives the info of that step. An agent that returns before the
            episode has ended has nothing more to say: the episode is stopped and graded.
        """
        ...


def next_action(play: Play, info: Info | None) -> str | None:
    """Returns the action that follows a step's info, None at first; None where there is no more."""
    try:
        return next(play) if info is None else play.send(info)
    except StopIteration:
        return None
