"""One-turn probes of a model: which tool formats it writes, how fast, with or without ids."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from coding_gym.agents.chat import Sampling
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.model_client import OpenAIClient
from coding_gym.errors import CodingGymError
from coding_gym.text.chat import get_chat
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import Toolset
from coding_gym.tools.formats import ReplyParser, explains_format, with_instructions
from coding_gym.trajectory import Message, ModelCall

_REPORTS = (
    "`area(2, 3)` in shapes.py returns 5 instead of 6.",
    "The test tests/test_parser.py::test_empty fails with an IndexError.",
    "Dates before 1970 are formatted with the wrong year.",
    "`python -m tool --help` ends with a KeyError.",
)

Ask = Callable[[Sequence[Message], str, int], Awaitable[tuple[str, ModelCall]]]
"""Returns a model's reply to a chat, by the tool format and a seed."""


@dataclass(slots=True)
class FormatProbe:
    """The replies of a model in one tool format.

    Attributes:
        tool_format: The format.
        replies: Each reply with the figures of its request.
        num_parsed: Number of replies that have a call and no unreadable call.
        problem: The error that ended the probe; else the first reply without a readable call, or
            "".
    """

    tool_format: str
    replies: list[tuple[str, ModelCall]] = field(default_factory=list)
    num_parsed: int = 0
    problem: str = ""


async def probe_format(ask: Ask, toolset: Toolset, tool_format: str) -> FormatProbe:
    """Asks a model for first turns in one format; no sandbox is opened and no call is run.

    An error of the model ends the probe.

    Raises:
        InvalidArgumentError: The format can call none of the tools.
    """
    prompt = toolset.prompt(keeps_shell=False)
    system = with_instructions(prompt, tool_format, toolset.schemas)
    parser = ReplyParser(tool_format, toolset.schemas, text_formats=toolset.text_formats)
    probe = FormatProbe(tool_format)
    for seed, report in enumerate(_REPORTS):
        chat = [{"role": "system", "content": system}, {"role": "user", "content": report}]
        try:
            reply, call = await ask(chat, tool_format, seed)
        except CodingGymError as problem:
            probe.problem = str(problem)
            break
        action = parser.read(reply, calls=getattr(reply, "calls", None))
        is_parsed = bool(action.calls) and not (action.error or any(c.error for c in action.calls))
        probe.replies.append((reply, call))
        probe.num_parsed += is_parsed
        probe.problem = probe.problem or ("" if is_parsed else str(reply))
    return probe


def server_ask(client: OpenAIClient, model: str, sampling: Sampling, toolset: Toolset) -> Ask:
    """Returns a function that asks a server; the request has the tools if the prompt omits them."""

    async def ask(chat: Sequence[Message], tool_format: str, seed: int) -> tuple[str, ModelCall]:
        body: dict[str, Any] = {"model": model, "seed": seed, **sampling.body(), "messages": chat}
        if not explains_format(tool_format):
            body["tools"] = list(toolset.schemas)
        reply = await client.complete(body)
        return reply.action, reply.call

    return ask


def local_ask(agent: HuggingFaceAgent, toolset: Toolset) -> Ask:
    """Returns a function that asks a local model, with the prompt layout of episodes."""

    async def ask(chat: Sequence[Message], tool_format: str, seed: int) -> tuple[str, ModelCall]:
        layout = get_chat(get_tokenizer(agent.tokenizer), toolset.schemas, tool_format)
        opening = layout.opening(chat)
        return await agent.reply([*opening.ids, *opening.prompt], None, seed, 0)

    return ask
