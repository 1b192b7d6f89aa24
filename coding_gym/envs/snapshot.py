"""All that an env and its wrappers are at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from coding_gym.envs.randomness import Randomness
from coding_gym.errors import InvalidArgumentError

if TYPE_CHECKING:  # the package is imported without its sandboxes
    from coding_gym.episode import EpisodeSnapshot
    from coding_gym.task import Task
    from coding_gym.tasks import Sampler

OPTION = "snapshot"
"""The option of ``reset`` that begins an episode at a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnvSnapshot:
    """All that an env and its wrappers are at one moment.

    It holds no sandbox, and lives as long as it is kept. ``reset(options={"snapshot": it})`` begins
    an episode there in any env, wrapped or not, with the same ``settings``, and in all or some envs
    of a vector env; `restore` also takes up the sequence of tasks and all random generators.

    Attributes:
        episode: The running episode.
        settings: What the env was made with, as far as it shapes an episode.
        tasks: The tasks that its sampler chooses from.
        sampler: How far it is in its sequence of tasks.
        randomness: All random generators.
        wrappers: What wrappers remember, by the name of their class.
    """

    episode: "EpisodeSnapshot"
    settings: Mapping[str, Any] = field(repr=False)
    tasks: "tuple[Task, ...]" = field(repr=False)
    sampler: "Sampler" = field(repr=False)
    randomness: Randomness = field(repr=False)
    wrappers: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Looks whether the episode may go on in an env with these settings.

        Raises:
            InvalidArgumentError: It may not; the message names the first that differs.
        """
        for name, value in settings.items():
            if self.settings[name] != value:
                raise InvalidArgumentError(
                    f"the snapshot is of an env with {name}={self.settings[name]!r}, this one has "
                    f"{value!r}; make it with the same arguments and budgets"
                )

    def check_sequence(self, tasks: "tuple[Task, ...]", sampler: "Sampler") -> None:
        """Looks whether an env may take up the sequence of tasks.

        Raises:
            InvalidArgumentError: It has other tasks or another kind of sampler.
        """
        if type(self.sampler) is not type(sampler) or self.tasks != tasks:
            raise InvalidArgumentError(
                "the snapshot is of an env with other tasks or another sampler; begin only its "
                'episode by reset(options={"snapshot": ...})'
            )

    def state_of(self, wrapper: gym.Wrapper[Any, Any, Any, Any]) -> Any:
        """Returns what a wrapper of this class remembered, or None where there was none."""
        return self.wrappers.get(type(wrapper).__name__)


def checked(value: object) -> EnvSnapshot:
    """Returns ``value`` if it is a snapshot.

    Raises:
        InvalidArgumentError: It is not.
    """
    if not isinstance(value, EnvSnapshot):
        raise InvalidArgumentError(
            f"a snapshot is what coding_gym.snapshot returned, got {value!r}"
        )
    return value
