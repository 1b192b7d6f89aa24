"""An agent that asks a chat model for every action."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from coding_gym.agents.live_episode import LiveEpisode, Player
from coding_gym.agents.model_client import ModelClient
from coding_gym.agents.model_reply import Reply
from coding_gym.envs.chat_request import chat_request
from coding_gym.json_record import JsonRecord
from coding_gym.tools.formats import explains_format


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling(JsonRecord):
    """How a model samples; None leaves a setting to the server.

    Attributes:
        temperature: 0 or more.
        top_p: Above 0, at most 1.
        top_k: As vLLM and SGLang take it.
        min_p: As vLLM and SGLang take it.
        max_tokens: The most tokens of one reply; 4,096 as in nano-agent, and less where the server
            says that this does not fit.
        reasoning_effort: Such as ``"low"``, for models that take it.
        thinking: Whether the chat template lets the model think (``enable_thinking``).
        extra: Other fields of the request's body.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int | None = 4096
    reasoning_effort: str | None = None
    thinking: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Returns the fields of the request's body."""
        fields: dict[str, Any] = {k: v for k, v in asdict(self).items() if v is not None}
        extra = fields.pop("extra")
        if (thinking := fields.pop("thinking", None)) is not None:
            fields["chat_template_kwargs"] = {"enable_thinking": thinking}
        return {**fields, **extra}


class ChatAgent(Player):
    """Plays episodes by a chat model, with native tool calls or any text format.

    The history is append-only: a reply stands in it as it was received, with ids and argument
    strings untouched. With the tool format ``"auto"`` the server is sent the tools' schemas; with
    any other the system prompt explains the tools, and replies and results go back as text.

    Args:
        client: Sends the requests.
        model: The model's name, as the server knows it.
        sampling: How it samples. Each attempt is sent a seed of its own.
    """

    name = "chat"

    def __init__(self, client: ModelClient, model: str, sampling: Sampling | None = None) -> None:
        self.model = model
        self._client = client
        self._sampling = sampling or Sampling()

    def describe(self) -> Mapping[str, Any]:
        """Returns the settings of the sampling, and the server's address."""
        return {"base_url": self._client.base_url, "sampling": self._sampling.body()}

    async def play(self, live: LiveEpisode) -> None:
        """Asks for actions until the episode has ended."""
        api = "text" if explains_format(live.episode.tool_format) else "chat"
        while not live.ended:
            reply = await self._ask(live, chat_request(live.episode, api))
            await live.step(reply.action, reply.call, reply.prompt_ids)

    async def _ask(self, live: LiveEpisode, chat: Mapping[str, Any]) -> Reply:
        """Returns the reply to a chat."""
        request = {"model": self.model, "seed": live.seed, **self._sampling.body(), **chat}
        left = live.episode.info()["budget"]["tokens"]
        if left is not None:
            request["max_tokens"] = min(left, request.get("max_tokens") or left)
        return await self._client.complete(request)

    async def close(self) -> None:
        """Closes the connections to the server."""
        await self._client.close()
