"""Agents without a model by name: the gold patch, nothing, random calls, a script, a search."""

import json
from collections.abc import Iterable
from pathlib import Path

from coding_gym.agents.protocol import Agent, Play, Seat
from coding_gym.agents.template_repair import template_repair
from coding_gym.agents.tool_use import ToolUse
from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.tasks.rows import read_jsonl

_NUM_RANDOM_ACTIONS = 10


def fixed(actions: Iterable[str]) -> Play:
    """Plays actions that do not depend on results, one after the other."""
    for action in actions:  # noqa: UP028 - a list's iterator cannot be sent anything
        yield action


def _gold(seat: Seat) -> Play:
    """Applies the gold patch by one call and submits; the upper bound."""
    tools = ToolUse.of(seat)
    return fixed([tools.applying(seat.task.gold_patch, "gold"), *tools.submission()])


def _noop(seat: Seat) -> Play:
    """Submits the tree as it is; a task that it resolves is not broken."""
    return fixed(ToolUse.of(seat).submission())


def _random(seat: Seat) -> Play:
    """Draws ten valid calls from the action space and submits; the lower bound."""
    for _ in range(_NUM_RANDOM_ACTIONS):
        yield seat.action_space.sample()
    yield from fixed(ToolUse.of(seat).submission())


_AGENTS = {
    "template-repair": template_repair,
    "gold": _gold,
    "noop": _noop,
    "random": _random,
}
_SCRIPTED = "scripted"


def agent_names() -> tuple[str, ...]:
    """Returns the names that `get_agent` takes."""
    return (*_AGENTS, _SCRIPTED)


def get_agent(name: str, *, script: str | None = None) -> Agent:
    """Returns an agent without a model.

    ``gold`` reads the patch of the task, ``random`` draws from the action space of the episode.

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
        return Agent(name, lambda _: fixed(actions))
    if name not in _AGENTS:
        raise unknown_name("agent", name, agent_names())
    if script is not None:
        raise InvalidArgumentError(f"agent {name!r} takes no script; use the agent 'scripted'")
    return Agent(name, _AGENTS[name])


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
