"""Agents without a model by name: the gold patch, nothing, random calls, a script, a search."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from coding_gym.agents.demonstration import demonstrate
from coding_gym.agents.live_episode import Actions
from coding_gym.agents.template_repair import template_repair
from coding_gym.agents.tool_use import ToolUse
from coding_gym.arguments import unknown_name
from coding_gym.envs.spaces import ActionText
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.tasks.rows import read_jsonl

_NUM_RANDOM_ACTIONS = 10


def _noop(episode: Episode, _: int) -> Iterator[str]:
    """Submits the tree as it is; a task that it resolves is not broken."""
    yield from ToolUse.of(episode).submission()


def _random(episode: Episode, seed: int) -> Iterator[str]:
    """Draws ten valid calls from the action space and submits; the lower bound."""
    space = ActionText(episode.toolset.name, seed)
    for _ in range(_NUM_RANDOM_ACTIONS):
        yield space.sample()
    yield from ToolUse.of(episode).submission()


_AGENTS: Mapping[str, Actions] = {
    "template-repair": lambda episode, _: template_repair(episode),
    "gold": lambda episode, _: demonstrate(episode),
    "noop": _noop,
    "random": _random,
}
_SCRIPTED = "scripted"


def agent_names() -> tuple[str, ...]:
    """Returns the names that `get_agent` takes."""
    return (*_AGENTS, _SCRIPTED)


def get_agent(name: str, *, script: str | None = None) -> Actions:
    """Returns the actions of an agent without a model.

    Where they end before the episode does, it is stopped and graded. They raise
    `InvalidArgumentError` where a tool is missing. ``gold`` reads the patch of the task, ``random``
    draws from the action space.

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
        return lambda *_: iter(actions)
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
