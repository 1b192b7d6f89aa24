"""Agents that know what they will do: the gold patch, nothing, anything, a script."""

import base64
from collections.abc import Callable, Sequence

from coding_gym.agents.actions import call, submit
from coding_gym.agents.protocol import Info, Play


class GoldAgent:
    """Applies the reference repair through the shell and submits; the upper bound.

    Args:
        gold_patch: The task's gold patch, a unified diff.
    """

    name = "gold"

    def __init__(self, gold_patch: str) -> None:
        self._patch = gold_patch.encode("utf-8", "surrogateescape")

    def play(self, info: Info) -> Play:  # noqa: ARG002 - an agent's signature
        """Applies the patch by one shell command, then submits."""
        encoded = base64.b64encode(self._patch).decode()
        yield call("shell", cmd=f"echo {encoded} | base64 -d | git apply --whitespace=nowarn -")
        yield submit()


class NoopAgent:
    """Submits the tree as it is; what resolves here was never broken."""

    name = "noop"

    def play(self, info: Info) -> Play:  # noqa: ARG002 - an agent's signature
        """Submits at once."""
        yield submit()


class RandomAgent:
    """Draws valid calls at random; the lower bound.

    Args:
        sample: Draws one action, such as ``env.action_space.sample``.
        num_actions: Actions per episode, after which it submits.
    """

    name = "random"

    def __init__(self, sample: Callable[[], str], num_actions: int = 10) -> None:
        self._sample = sample
        self._num_actions = num_actions

    def play(self, info: Info) -> Play:  # noqa: ARG002 - an agent's signature
        """Plays samples, then submits."""
        for _ in range(self._num_actions):
            yield self._sample()
        yield submit()


class ScriptedAgent:
    """Plays given actions one after the other.

    Args:
        actions: The actions, as ``step`` takes them.
    """

    name = "scripted"

    def __init__(self, actions: Sequence[str]) -> None:
        self._actions = tuple(actions)

    def play(self, info: Info) -> Play:  # noqa: ARG002 - an agent's signature
        """Plays the script to its end."""
        for action in self._actions:  # noqa: UP028 - a tuple's iterator cannot be sent anything
            yield action
