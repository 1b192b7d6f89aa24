"""The agents of runs, found by name."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from coding_gym.agents.chat import ChatAgent, Sampling
from coding_gym.agents.harness import get_harness, harness_names
from coding_gym.agents.harness_player import HarnessPlayer
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.live_episode import Actions, ActionsPlayer, Player
from coding_gym.agents.model_client import get_client
from coding_gym.agents.model_reply import Prices
from coding_gym.agents.template_repair import template_repair
from coding_gym.agents.tool_use import gold, submission
from coding_gym.arguments import check_arguments, unknown_name
from coding_gym.envs.spaces import ActionText
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.tasks.rows import read_jsonl

Settings = TypeVar("Settings", Sampling, Prices)

_NUM_RANDOM_ACTIONS = 10


def _random(episode: Episode, seed: int) -> Iterator[str]:
    """Samples ten valid calls from the action space and submits."""
    space = ActionText(episode.toolset.name, seed)
    for _ in range(_NUM_RANDOM_ACTIONS):
        yield space.sample()
    yield from submission(episode)


_WITHOUT_MODEL: Mapping[str, Actions] = {
    "template-repair": lambda episode, _: template_repair(episode),
    "gold": lambda episode, _: gold(episode),
    "noop": lambda episode, _: submission(episode),  # submits the unchanged tree
    "random": _random,
}
_SERVED = ("model", "base_url", "sampling", "prices", "model_timeout_s")
_ARGUMENTS = {
    "chat": _SERVED,
    "hf": ("model", "sampling"),
    "harness": ("harness", *_SERVED),
    **dict.fromkeys(_WITHOUT_MODEL, ()),
}
_SCRIPT = ".jsonl"


def player_names() -> tuple[str, ...]:
    """Returns the names of all agents except scripts."""
    return tuple(_ARGUMENTS)


def get_player(
    agent: str,
    *,
    model: str | None = None,
    harness: str | None = None,
    base_url: str | None = None,
    sampling: Mapping[str, Any] | None = None,
    prices: Mapping[str, float] | None = None,
    model_timeout_s: float | None = None,
) -> Player:
    """Returns an agent for a run.

    If an agent has no more actions, the episode is stopped and graded.

    Args:
        agent: One of `player_names`, or a JSONL file whose lines are actions: texts, or tool calls
            as objects.
        model: The model's name on the server. For ``hf`` a folder, or a name in the local Hugging
            Face cache.
        harness: A preset or a TOML file for the agent ``harness``; see `coding_gym.agents.harness`.
        base_url: Address of an OpenAI-compatible server, by default OpenAI's; its key is the
            environment variable ``OPENAI_API_KEY``.
        sampling: Sampling settings: the attributes of `Sampling`.
        prices: Prices of the model's tokens: the attributes of `Prices`.
        model_timeout_s: Time limit of one reply in seconds, retries included; by default 600.

    Raises:
        UnknownNameError: No agent has this name.
        InvalidArgumentError: An argument is missing, is invalid, or belongs to another agent; or no
            server listens at a ``base_url`` on this machine.
        MissingDependencyError: The package that the agent needs is not installed.
    """
    arguments = {
        "model": model,
        "harness": harness,
        "base_url": base_url,
        "sampling": sampling,
        "prices": prices,
        "model_timeout_s": model_timeout_s,
    }
    is_script = agent.endswith(_SCRIPT)
    if agent not in _ARGUMENTS and not is_script:
        raise unknown_name("agent", agent, (*player_names(), f"a script FILE{_SCRIPT}"))
    names = [name for name, value in arguments.items() if value is not None]
    if unused := ", ".join(name for name in names if name not in _ARGUMENTS.get(agent, ())):
        raise InvalidArgumentError(f"agent {agent!r} does not take {unused}; omit these arguments")
    if agent in _WITHOUT_MODEL:
        return ActionsPlayer(agent, _WITHOUT_MODEL[agent])
    if is_script:
        actions = _read_script(Path(agent))
        return ActionsPlayer("scripted", lambda *_: iter(actions))
    if not model:
        raise InvalidArgumentError(f"agent {agent!r} needs a model, got none; name it with --model")
    settings = _read(Sampling, "sampling", sampling)
    if agent == "hf":
        return HuggingFaceAgent(model, settings)
    client = get_client(base_url, model_timeout_s or 600.0, _read(Prices, "prices", prices))
    chat = ChatAgent(client, model, settings)
    if agent == "chat":
        return chat
    if not harness:
        raise InvalidArgumentError(
            f"agent {agent!r} needs a harness; name it with --harness: a TOML file, or one of "
            f"{', '.join(harness_names())}"
        )
    return HarnessPlayer(get_harness(harness), chat)


def _read(kind: type[Settings], name: str, values: Mapping[str, Any] | None) -> Settings | None:
    if values is None:
        return None
    record: Any = kind
    check_arguments(name, values, [attribute.name for attribute in fields(record)])
    return kind.from_json(values, name)


def _read_script(path: Path) -> list[str]:
    try:
        lines = list(read_jsonl(path))
    except InvalidTaskError as problem:
        raise InvalidArgumentError(f"the script {problem}") from None
    for location, action in lines:
        if not isinstance(action, str | dict | list):
            raise InvalidArgumentError(f"{location} must be a text or a tool call, got {action!r}")
    return [action if isinstance(action, str) else json.dumps(action) for _, action in lines]
