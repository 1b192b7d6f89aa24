"""Agents without a policy: the gold patch, nothing, random calls, a script."""

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coding_gym.agents.protocol import Info, Play, Seat
from coding_gym.agents.tool_use import ToolUse

_NUM_RANDOM_ACTIONS = 10


@dataclass(frozen=True, slots=True)
class FixedAgent:
    """Plays actions that do not depend on results.

    Attributes:
        name: The name that ``--agent`` takes.
        actions: The actions, as ``step`` takes them.
    """

    name: str
    actions: Iterable[str]

    def play(self, info: Info) -> Play:  # noqa: ARG002 - an agent's signature
        """Plays the actions, one after the other."""
        for action in self.actions:  # noqa: UP028 - a tuple's iterator cannot be sent anything
            yield action


def gold_agent(seat: Seat) -> FixedAgent:
    """Returns an agent that applies the gold patch by one call and submits; the upper bound.

    Raises:
        InvalidArgumentError: No tool runs a shell command or applies a patch.
    """
    tools, patch = ToolUse.of(seat), seat.task.gold_patch
    encoded = base64.b64encode(patch.encode("utf-8", "surrogateescape")).decode()
    command = f"echo {encoded} | base64 -d | git apply --whitespace=nowarn -"
    action = tools.shell(command) or tools.patch(patch)
    if action is None:
        raise tools.refusal("gold", "runs a shell command or applies a patch")
    return FixedAgent("gold", [action, *tools.submission()])


def noop_agent(seat: Seat) -> FixedAgent:
    """Returns an agent that submits the tree as it is; a task that it resolves is not broken."""
    return FixedAgent("noop", ToolUse.of(seat).submission())


def random_agent(seat: Seat) -> FixedAgent:
    """Returns an agent that draws ten valid calls from the action space; the lower bound."""

    def actions() -> Iterator[str]:
        for _ in range(_NUM_RANDOM_ACTIONS):
            yield seat.action_space.sample()
        yield from ToolUse.of(seat).submission()

    return FixedAgent("random", actions())
