"""The built-in agents, found by name."""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

from coding_gym.agents.chat import ChatAgent, Sampling
from coding_gym.agents.harness import HarnessPlayer, get_harness, harness_names
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.model_client import get_client
from coding_gym.agents.model_reply import Prices
from coding_gym.agents.player import Player
from coding_gym.agents.scripted import ActionsPlayer, gold, random_calls, read_script, submission
from coding_gym.agents.template_repair import template_repair
from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError

_Settings = TypeVar("_Settings", Sampling, Prices)


def _chat(
    model: str,
    base_url: str | None = None,
    sampling: Mapping[str, Any] | None = None,
    prices: Mapping[str, float] | None = None,
    model_timeout_s: float = 600.0,
) -> ChatAgent:
    settings = _read(Sampling, "sampling", sampling)
    client = get_client(base_url, model_timeout_s, _read(Prices, "prices", prices))
    return ChatAgent(client, model, settings)


def _hf(model: str, sampling: Mapping[str, Any] | None = None) -> HuggingFaceAgent:
    return HuggingFaceAgent(model, _read(Sampling, "sampling", sampling))


def _harness(
    model: str,
    harness: str,
    base_url: str | None = None,
    sampling: Mapping[str, Any] | None = None,
    prices: Mapping[str, float] | None = None,
    model_timeout_s: float = 600.0,
) -> HarnessPlayer:
    chat = _chat(model, base_url, sampling, prices, model_timeout_s)
    return HarnessPlayer(get_harness(harness), chat)


_AGENTS: Mapping[str, Callable[..., Player]] = {
    "chat": _chat,
    "hf": _hf,
    "harness": _harness,
    "template-repair": partial(ActionsPlayer, "template-repair", template_repair),
    "gold": partial(ActionsPlayer, "gold", gold),
    "noop": partial(ActionsPlayer, "noop", submission),  # submits the unchanged tree
    "random": partial(ActionsPlayer, "random", random_calls),
}
_SCRIPT = ".jsonl"


def player_names() -> tuple[str, ...]:
    """Returns the names of all agents except scripts."""
    return tuple(_AGENTS)


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
    """Returns the player of an agent.

    If an agent has no more actions, the episode is stopped and graded.

    Args:
        agent: One of `player_names`, or a JSONL file whose lines are actions: texts, or tool calls
            as objects.
        model: The model's name on the server. For ``hf`` a folder, or a name in the local Hugging
            Face cache.
        harness: A preset or a TOML file for the agent ``harness``; see `coding_gym.agents.harness`.
        base_url: Address of an OpenAI-compatible server, by default OpenAI's; the
            environment variable ``OPENAI_API_KEY`` has the key.
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
    arguments = {name: value for name, value in arguments.items() if value not in (None, "")}
    create = partial(read_script, Path(agent)) if agent.endswith(_SCRIPT) else _AGENTS.get(agent)
    if create is None:
        raise unknown_name("agent", agent, (*player_names(), f"a script FILE{_SCRIPT}"))
    parameters = signature(create).parameters
    if names := ", ".join(name for name in arguments if name not in parameters):
        raise InvalidArgumentError(f"agent {agent!r} does not take {names}; omit these arguments")
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in arguments:
            presets = f" (presets: {', '.join(harness_names())})" if name == "harness" else ""
            raise InvalidArgumentError(
                f"agent {agent!r} needs a {name}; set {name} (--{name}){presets}"
            )
    return create(**arguments)


def _read(kind: type[_Settings], name: str, values: Mapping[str, Any] | None) -> _Settings | None:
    return None if values is None else kind.from_arguments(values, name)
