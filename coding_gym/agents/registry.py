"""Agents without a model by name: the gold patch, nothing, random calls, a script, a search."""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from coding_gym.agents.protocol import Agent, Info, Play, Seat
from coding_gym.agents.template_repair import TemplateRepairAgent
from coding_gym.agents.tool_use import ToolUse
from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.tasks.rows import read_jsonl

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


AgentFactory = Callable[[Seat], Agent]
"""Makes an agent for an env that was just reset.

Raises `InvalidArgumentError` where the agent needs a tool that the env's toolset does not have.
"""

_AGENTS: dict[str, AgentFactory] = {
    "template-repair": lambda env: TemplateRepairAgent(ToolUse.of(env)),
    "gold": gold_agent,
    "noop": noop_agent,
    "random": random_agent,
}
_SCRIPTED = "scripted"


def agent_names() -> tuple[str, ...]:
    """Returns the names that `agent_factory` takes."""
    return (*_AGENTS, _SCRIPTED)


def agent_factory(name: str, *, script: str | None = None) -> AgentFactory:
    """Returns a function that makes an agent for an env that was reset.

    ``gold`` reads the patch of the env's task, ``random`` draws from its action space.

    Args:
        name: One of `agent_names`.
        script: For ``scripted``: a JSONL file, each line an action (text, or a call as an object).

    Raises:
        UnknownNameError: There is no such agent.
        InvalidArgumentError: The script is missing, cannot be read, or is another agent's.
    """
    if name == _SCRIPTED:
        if script is None:
            raise InvalidArgumentError("agent 'scripted' needs a script: a JSONL file of actions")
        actions = read_script(Path(script))
        return lambda _env: FixedAgent(name, actions)
    if name not in _AGENTS:
        raise unknown_name("agent", name, agent_names())
    if script is not None:
        raise InvalidArgumentError(f"agent {name!r} takes no script; use the agent 'scripted'")
    return _AGENTS[name]


def read_script(path: Path) -> list[str]:
    """Reads actions from a JSONL file: each line a text, or an object that is a tool call.

    Raises:
        InvalidArgumentError: The file is missing, or a line is neither.
    """
    try:
        lines = list(read_jsonl(path))
    except InvalidTaskError as problem:
        raise InvalidArgumentError(f"the script {problem}") from None
    for where, action in lines:
        if not isinstance(action, str | dict | list):
            raise InvalidArgumentError(f"{where} must be a text or a tool call")
    return [action if isinstance(action, str) else json.dumps(action) for _, action in lines]
