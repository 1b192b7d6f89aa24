"""Agents of runs by name."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from coding_gym.agents.chat import ChatAgent, Sampling
from coding_gym.agents.harness import get_harness, harness_names
from coding_gym.agents.harness_player import HarnessPlayer
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.live_episode import ActionsPlayer, Player
from coding_gym.agents.model_client import (
    LiteLLMClient,
    ModelClient,
    OpenAIClient,
    check_local_server,
)
from coding_gym.agents.model_reply import Prices
from coding_gym.agents.registry import agent_names, get_agent
from coding_gym.arguments import check_arguments, unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.json_record import read_record

Settings = TypeVar("Settings", Sampling, Prices)

_SERVED = ("model", "base_url", "sampling", "prices", "model_timeout_s", "max_retries")
_TAKES = {
    "chat": _SERVED,
    "harness": ("harness", *_SERVED),
    "hf": ("model", "sampling"),
    "scripted": ("script",),
}


def player_names() -> tuple[str, ...]:
    """Returns the names that `get_player` takes."""
    return ("chat", "hf", "harness", *agent_names())


def get_player(
    agent: str,
    *,
    model: str | None = None,
    harness: str | None = None,
    base_url: str | None = None,
    sampling: Sampling | Mapping[str, Any] | None = None,
    prices: Prices | Mapping[str, Any] | None = None,
    model_timeout_s: float | None = None,
    max_retries: int | None = None,
    script: str | None = None,
) -> Player:
    """Returns an agent for a run.

    Args:
        agent: One of `player_names`.
        model: The model's name. With ``base_url`` as that server knows it; without, a provider and
            a name as LiteLLM writes them, such as ``"anthropic/…"``. For ``hf`` a folder, or a name
            in the local Hugging Face cache.
        harness: For ``harness``: a preset or a TOML file, see `coding_gym.agents.harness`.
        base_url: Address of an OpenAI-compatible server, whose key is the environment variable
            ``OPENAI_API_KEY``.
        sampling: How the model samples; a mapping has the attributes of `Sampling`.
        prices: Prices of the model's tokens; a mapping has the attributes of `Prices`.
        model_timeout_s: Seconds that one reply may take, retries included; by default 600.
        max_retries: How often a request is sent again; by default 8.
        script: For ``scripted``: a JSONL file of actions.

    Raises:
        UnknownNameError: There is no such agent.
        InvalidArgumentError: An argument is missing, or belongs to another agent; or ``base_url``
            is on this machine, and nothing listens there.
        MissingDependencyError: The package that the agent needs is not installed.
    """
    if agent not in player_names():
        raise unknown_name("agent", agent, player_names())
    arguments = {
        "model": model,
        "harness": harness,
        "base_url": base_url,
        "sampling": sampling,
        "prices": prices,
        "model_timeout_s": model_timeout_s,
        "max_retries": max_retries,
        "script": script,
    }
    _check_taken(agent, {name for name, value in arguments.items() if value is not None})
    if "model" not in _TAKES.get(agent, ()):
        return ActionsPlayer(agent, get_agent(agent, script=script))
    if not model:
        raise InvalidArgumentError(f"agent {agent!r} needs a model; name one (--model)")
    how = _read(Sampling, "sampling", sampling)
    if agent == "hf":
        return HuggingFaceAgent(model, how)
    client = _client(base_url, model_timeout_s, max_retries, _read(Prices, "prices", prices))
    if agent == "harness":
        if not harness:
            raise InvalidArgumentError(
                f"name the harness (--harness): {', '.join(harness_names())}, or a TOML file"
            )
        return HarnessPlayer(get_harness(harness), client, model=model, sampling=how)
    return ChatAgent(client, model, how)


def _check_taken(agent: str, names: set[str]) -> None:
    taken = _TAKES.get(agent, ())
    if wrong := sorted(names - set(taken)):
        raise InvalidArgumentError(
            f"agent {agent!r} takes no {', '.join(wrong)}; it takes {', '.join(taken) or 'nothing'}"
        )


def _client(
    base_url: str | None, timeout_s: float | None, max_retries: int | None, prices: Prices | None
) -> ModelClient:
    if base_url:
        check_local_server(base_url)
    client_type = OpenAIClient if base_url else LiteLLMClient
    retries = 8 if max_retries is None else max_retries
    return client_type(base_url or "", timeout_s or 600.0, retries, prices)


def _read(
    kind: type[Settings], name: str, values: Settings | Mapping[str, Any] | None
) -> Settings | None:
    """Makes a `Sampling` or `Prices` from JSON values; others are returned as they are."""
    if not isinstance(values, Mapping):
        return values
    known: Any = kind
    check_arguments(name, values, [each.name for each in fields(known)])
    return read_record(kind, values, name)
