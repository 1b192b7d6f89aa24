"""Agents by name."""

import json
from collections.abc import Callable
from pathlib import Path

from coding_gym.agents.protocol import Agent, Seat
from coding_gym.agents.simple import FixedAgent, gold_agent, noop_agent, random_agent
from coding_gym.agents.template_repair import TemplateRepairAgent
from coding_gym.agents.tool_use import ToolUse
from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.tasks.rows import read_jsonl

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
