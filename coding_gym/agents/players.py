"""Agents of runs by name."""

from coding_gym.agents.chat import ChatAgent, Sampling
from coding_gym.agents.direct import DirectAgent
from coding_gym.agents.harness import HarnessPlayer
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.live_episode import ActionsPlayer, Player
from coding_gym.agents.mini_swe_agent import mini_swe_agent
from coding_gym.agents.model_client import (
    LiteLLMClient,
    OpenAIClient,
    Prices,
    check_local_server,
)
from coding_gym.agents.nano_agent import nano_agent
from coding_gym.agents.registry import agent_names, get_agent
from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError

_HARNESSES = {"nano-agent": nano_agent, "mini-swe-agent": mini_swe_agent}

MODEL_AGENTS = ("chat", "direct", "hf", *_HARNESSES)
"""Agents that ask a model; all others are those of `agent_names`."""


def player_names() -> tuple[str, ...]:
    """Returns the names that `get_player` takes."""
    return (*MODEL_AGENTS, *agent_names())


def get_player(
    agent: str,
    *,
    model: str = "",
    base_url: str | None = None,
    sampling: Sampling | None = None,
    prices: Prices | None = None,
    model_timeout_s: float = 600.0,
    max_retries: int = 8,
    history: str = "append",
    script: str | None = None,
) -> Player:
    """Returns an agent for a run.

    Args:
        agent: One of `player_names`.
        model: The model's name. With ``base_url`` as that server knows it; without, a provider and
            a name as LiteLLM writes them, such as ``"anthropic/…"``. For ``hf`` a folder, or a name
            in the local Hugging Face cache.
        base_url: Address of an OpenAI-compatible server, whose key is the environment variable
            ``OPENAI_API_KEY``.
        sampling: How the model samples.
        prices: Prices of the model's tokens.
        model_timeout_s: Seconds that one reply may take, retries included.
        max_retries: How often a request is sent again.
        history: For ``hf``, as `HuggingFaceAgent` takes it.
        script: For ``scripted``: a JSONL file of actions.

    Raises:
        UnknownNameError: There is no such agent.
        InvalidArgumentError: An argument is missing, or belongs to another agent; or ``base_url``
            is on this machine, and nothing listens there.
        MissingDependencyError: The package that the agent needs is not installed.
    """
    if agent not in player_names():
        raise unknown_name("agent", agent, player_names())
    if agent not in MODEL_AGENTS:
        if model or base_url:
            raise InvalidArgumentError(
                f"agent {agent!r} asks no model, got model={model!r} and base_url={base_url!r}; "
                "use the agent 'chat'"
            )
        return ActionsPlayer(agent, get_agent(agent, script=script))
    if not model:
        raise InvalidArgumentError(f"agent {agent!r} needs a model; name one (--model)")
    if agent == "hf":
        if base_url:
            raise InvalidArgumentError(
                f"agent 'hf' loads its model itself, got base_url={base_url!r}; use agent 'chat'"
            )
        return HuggingFaceAgent(model, sampling, history=history)
    if base_url:
        check_local_server(base_url)
    client_type = OpenAIClient if base_url else LiteLLMClient
    client = client_type(base_url or "", model_timeout_s, max_retries, prices)
    if agent in _HARNESSES:
        return HarnessPlayer(_HARNESSES[agent](), client, model, sampling)
    return (DirectAgent if agent == "direct" else ChatAgent)(client, model, sampling)
