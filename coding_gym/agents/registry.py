"""Agents by name."""

import json
from collections.abc import Callable
from pathlib import Path

from coding_gym.agents.protocol import Agent
from coding_gym.agents.simple import GoldAgent, NoopAgent, RandomAgent, ScriptedAgent
from coding_gym.agents.template_repair import TemplateRepairAgent
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import InvalidArgumentError, UnknownNameError


def _scripted(path: str | None) -> ScriptedAgent:
    if path is None:
        raise InvalidArgumentError("agent 'scripted' needs a script: a JSONL file of actions")
    return ScriptedAgent(read_script(Path(path)))


_AGENTS: dict[str, Callable[[CodingRepairEnv, str | None], Agent]] = {
    "template-repair": lambda _env, _script: TemplateRepairAgent(),
    "gold": lambda env, _script: GoldAgent(env.task.gold_patch),
    "noop": lambda _env, _script: NoopAgent(),
    "random": lambda env, _script: RandomAgent(env.action_space.sample),
    "scripted": lambda _env, script: _scripted(script),
}


def agent_names() -> tuple[str, ...]:
    """Returns the names that `make_agent` takes."""
    return tuple(_AGENTS)


def make_agent(name: str, env: CodingRepairEnv, *, script: str | None = None) -> Agent:
    """Returns an agent for the episode that ``env`` was just reset to.

    Args:
        name: One of `agent_names`.
        env: The unwrapped env; ``gold`` reads its task's patch, ``random`` its action space.
        script: For ``scripted``: a JSONL file, each line an action (text, or a call as an object).

    Raises:
        UnknownNameError: There is no such agent.
        InvalidArgumentError: The script is missing or cannot be read.
    """
    if name not in _AGENTS:
        raise UnknownNameError(f"no agent is called {name!r}; known: {', '.join(_AGENTS)}")
    return _AGENTS[name](env, script)


def read_script(path: Path) -> list[str]:
    """Reads actions from a JSONL file: each line a text, or an object that is a tool call.

    Raises:
        InvalidArgumentError: The file is missing, or a line is neither.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        raise InvalidArgumentError(f"cannot read the script {path}: {problem.strerror}") from None
    actions = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            action = json.loads(line)
        except ValueError:
            raise InvalidArgumentError(f"{path} line {number} is not JSON: {line[:60]!r}") from None
        if not isinstance(action, str | dict | list):
            raise InvalidArgumentError(f"{path} line {number} must be a text or a tool call")
        actions.append(action if isinstance(action, str) else json.dumps(action))
    return actions
