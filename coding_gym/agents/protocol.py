"""The protocol of agents: a generator that yields actions and receives the info of each step."""

from collections.abc import Generator, Mapping
from typing import Any, Protocol

Info = Mapping[str, Any]
Play = Generator[str, Info, None]


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
