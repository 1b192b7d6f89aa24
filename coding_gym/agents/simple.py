"""Agents without a policy: the gold patch, nothing, random calls, a script."""

import base64
from collections.abc import Callable, Sequence

from coding_gym.agents.protocol import Info, Play
from coding_gym.agents.tool_use import ToolUse


class GoldAgent:
    """Applies the reference repair and submits; the upper bound.

    Args:
        gold_patch: The task's gold patch, a unified diff.
        tools: The tools of the env.

    Raises:
        InvalidArgumentError: No tool runs a shell command or applies a patch.
    """

    name = "gold"

    def __init__(self, gold_patch: str, tools: ToolUse | None = None) -> None:
        self._tools = tools or ToolUse.default()
        encoded = base64.b64encode(gold_patch.encode("utf-8", "surrogateescape")).decode()
        command = f"echo {encoded} | base64 -d | git apply --whitespace=nowarn -"
        action = self._tools.shell(command) or self._tools.patch(gold_patch)
        if action is None:
            raise self._tools.refusal(self.name, "runs a shell command or applies a patch")
        self._action = action

    def play(self, info: Info) -> Play:  # noqa: ARG002 - an agent's signature
        """Applies the patch by one call, then submits."""
        yield self._action
        if submission := self._tools.submit():
            yield submission


class NoopAgent:
    """Submits the tree as it is; a task that this resolves was never broken.

    Args:
        tools: The tools of the env.
    """

    name = "noop"

    def __init__(self, tools: ToolUse | None = None) -> None:
        self._tools = tools or ToolUse.default()

    def play(self, info: Info) -> Play:  # noqa: ARG002 - an agent's signature
        """Submits at once."""
        if submission := self._tools.submit():
            yield submission


class RandomAgent:
    """Draws valid calls at random; the lower bound.

    Args:
        sample: Draws one action, such as ``env.action_space.sample``.
        num_actions: Actions per episode, after which it submits.
        tools: The tools of the env.
    """

    name = "random"

    def __init__(
        self, sample: Callable[[], str], num_actions: int = 10, tools: ToolUse | None = None
    ) -> None:
        self._tools = tools or ToolUse.default()
        self._sample = sample
        self._num_actions = num_actions

    def play(self, info: Info) -> Play:  # noqa: ARG002 - an agent's signature
        """Plays samples, then submits."""
        for _ in range(self._num_actions):
            yield self._sample()
        if submission := self._tools.submit():
            yield submission


class ScriptedAgent:
    """Plays a list of actions one after the other.

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
