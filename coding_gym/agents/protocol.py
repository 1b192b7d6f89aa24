"""The protocol of agents: a generator that yields actions and receives the info of each step."""

from collections.abc import Generator, Mapping
from typing import Any, Protocol

from coding_gym.task import Task
from coding_gym.tools import Toolset

Info = Mapping[str, Any]
Play = Generator[str, Info, None]


class Seat(Protocol):
    """What an agent for an episode is made from, such as a `CodingRepairEnv`."""

    @property
    def task(self) -> Task:
        """The task that is played."""
        ...

    @property
    def toolset(self) -> Toolset:
        """The tools that the agent has."""
        ...

    @property
    def tool_format(self) -> str:
        """How calls are written."""
        ...

    @property
    def action_space(self) -> Any:
        """Random actions, by its ``sample()``."""
        ...


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
