"""The agent for a chat model on a server, and the settings of its sampling."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import Field

from coding_gym.action import Completion
from coding_gym.agents.model_client import OpenAIClient
from coding_gym.agents.player import Complete, LiveEpisode, Player
from coding_gym.envs.chat_request import chat_request
from coding_gym.episode.limits import Amount, Count
from coding_gym.json_record import JsonRecord
from coding_gym.tools.formats import explains_format


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling(JsonRecord):
    """Sampling settings of a model; None selects the default of the server or the local model.

    `from_json` checks each field.

    Attributes:
        temperature: Divisor of the logits, 0 or more.
        top_p: Cumulative probability of the candidate tokens, above 0 and at most 1.
        top_k: Number of candidate tokens, -1 or 0 for all; supported by vLLM and SGLang.
        min_p: Minimum probability of candidate tokens, as a fraction of the highest probability;
            supported by vLLM and SGLang.
        max_tokens: Maximum tokens of one reply, by default 4,096 as in nano-agent; the client
            halves the maximum while the server refuses it as too large.
        reasoning_effort: The amount of reasoning, such as ``"low"``.
        thinking: The argument ``enable_thinking`` of the chat template.
        extra: Other fields of the request's body.
    """

    temperature: Amount | None = None
    top_p: Annotated[Amount, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(strict=True, ge=-1)] | None = None
    min_p: Annotated[Amount, Field(le=1)] | None = None
    max_tokens: Count | None = 4096
    reasoning_effort: str | None = None
    thinking: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Returns the settings as fields of a request's body."""
        fields: dict[str, Any] = {k: v for k, v in asdict(self).items() if v is not None}
        extra = fields.pop("extra")
        if (thinking := fields.pop("thinking", None)) is not None:
            fields["chat_template_kwargs"] = {"enable_thinking": thinking}
        return {**fields, **extra}


class ChatAgent(Player):
    """Plays episodes with a chat model, by native tool calls or any text format.

    The history is append-only; replies keep their call ids and argument strings. If the system
    prompt explains the tool format, calls and results are text; otherwise requests contain the
    tools' schemas.

    Args:
        client: Sends the requests.
        model: The model's name on the server.
        sampling: Sampling settings. Each attempt has a different seed.
    """

    name = "chat"

    def __init__(self, client: OpenAIClient, model: str, sampling: Sampling | None = None) -> None:
        self.model = model
        self._client = client
        self._sampling = sampling or Sampling()

    def describe(self) -> Mapping[str, Any]:
        """Returns the sampling settings, and the server's address."""
        return {"base_url": self._client.base_url, "sampling": self._sampling.body()}

    def chat(self, seed: int) -> Complete:
        """Returns the function that replies to requests; see `Player`."""
        settings = {"model": self.model, "seed": seed, **self._sampling.body()}

        async def complete(request: Mapping[str, Any]) -> Completion:
            limits = [body["max_tokens"] for body in (request, settings) if body.get("max_tokens")]
            lowest = {"max_tokens": min(limits)} if limits else {}
            return await self._client.complete({**request, **settings, **lowest})

        return complete

    async def play(self, live: LiveEpisode) -> None:
        """Requests actions until the episode has ended."""
        await live.start()
        complete = self.chat(live.seed)
        api = "text" if explains_format(live.episode.tool_format) else "chat"
        while not live.ended:
            num_tokens = live.episode.info()["budget"]["tokens"]
            limit = {} if num_tokens is None else {"max_tokens": max(1, num_tokens)}
            await live.step(await complete({**chat_request(live.episode, api), **limit}))

    async def close(self) -> None:
        """Closes the connections to the server."""
        await self._client.close()
