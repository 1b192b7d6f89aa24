"""One-turn probes of a model: which tool formats it writes, how fast, with or without ids."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coding_gym.action import Completion
from coding_gym.agents.chat import Sampling
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.live_episode import ModelError
from coding_gym.agents.model_client import ModelClient
from coding_gym.errors import CodingGymError
from coding_gym.tools import Toolset
from coding_gym.tools.formats import ReplyParser, explains_format, with_instructions
from coding_gym.trajectory import ModelCall

_REPORTS = (
    "`area(2, 3)` in shapes.py returns 5 instead of 6.",
    "The test tests/test_parser.py::test_empty fails with an IndexError.",
    "Dates before 1970 are formatted with the wrong year.",
    "`python -m tool --help` ends with a KeyError.",
)

Ask = Callable[[Mapping[str, Any], int], Awaitable[tuple[str, ModelCall]]]
"""Returns the reply to ``messages`` and, where the model is sent them, ``tools``, with a seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatProbe:
    """What a model wrote in one tool format.

    Attributes:
        tool_format: The format.
        num_replies: How many replies there were.
        num_parsed: Replies with at least one call that can be read, all of them without error.
        num_with_ids: Replies whose token ids are known.
        num_cut: Replies that a length limit cut.
        num_tokens: Tokens of all replies.
        duration_s: Wall time of all replies in seconds, prompts included.
        example: The first reply that holds no readable call, or "".
        error: Why the probe ended early, or "".
    """

    tool_format: str
    num_replies: int = 0
    num_parsed: int = 0
    num_with_ids: int = 0
    num_cut: int = 0
    num_tokens: int = 0
    duration_s: float = 0.0
    example: str = ""
    error: str = ""

    @property
    def parsed(self) -> float:
        """The share of replies with readable calls, from 0 to 1."""
        return self.num_parsed / self.num_replies if self.num_replies else 0.0


async def probe_format(
    ask: Ask, toolset: Toolset, tool_format: str, num_replies: int
) -> FormatProbe:
    """Asks a model for first turns in one format; no sandbox is opened and no call is run.

    Args:
        ask: Asks the model.
        toolset: The tools.
        tool_format: The format, one of `TOOL_FORMATS` but ``template``.
        num_replies: How many replies, each to one of a few short reports.

    Returns:
        The counts; after a failure of the model those until then, with its error.

    Raises:
        InvalidArgumentError: The format can call none of the tools.
    """
    schemas = toolset.schemas
    system = with_instructions(toolset.prompt(keeps_shell=False), tool_format, schemas)
    parser = ReplyParser(tool_format, schemas, text_formats=toolset.text_formats)
    tools = {} if explains_format(tool_format) else {"tools": list(schemas)}
    counts = dict.fromkeys(("parsed", "with_ids", "cut", "tokens"), 0)
    num_done, example, error, began = 0, "", "", time.perf_counter()
    for number in range(num_replies):
        report = {"role": "user", "content": _REPORTS[number % len(_REPORTS)]}
        messages = [{"role": "system", "content": system}, report]
        try:
            reply, call = await ask({"messages": messages, **tools}, number)
        except CodingGymError as problem:
            error = str(problem)
            break
        is_completion = isinstance(reply, Completion)
        read = parser.read(reply, calls=reply.calls if isinstance(reply, Completion) else None)
        is_parsed = bool(read.calls) and not read.error and not any(c.error for c in read.calls)
        num_done += 1
        counts["parsed"] += is_parsed
        counts["with_ids"] += is_completion and bool(getattr(reply, "token_ids", ()))
        counts["cut"] += call.finish_reason == "length"
        counts["tokens"] += call.completion_tokens or 0
        example = example or ("" if is_parsed else str(reply))
    return FormatProbe(
        tool_format=tool_format,
        num_replies=num_done,
        **{f"num_{name}": count for name, count in counts.items()},
        duration_s=time.perf_counter() - began,
        example=example,
        error=error,
    )


def asking_server(client: ModelClient, model: str, sampling: Sampling) -> Ask:
    """Returns what asks a server."""

    async def ask(chat: Mapping[str, Any], seed: int) -> tuple[str, ModelCall]:
        reply = await client.complete({"model": model, "seed": seed, **sampling.body(), **chat})
        return reply.action, reply.call

    return ask


def asking_model(agent: HuggingFaceAgent) -> Ask:
    """Returns what asks a model of this process by its chat template."""

    async def ask(chat: Mapping[str, Any], seed: int) -> tuple[str, ModelCall]:
        try:
            ids = agent.render(chat["messages"], chat.get("tools"))
        except Exception as problem:  # a template is a program, and raises what it likes
            raise ModelError(f"the chat template fails: {problem}", "refused") from problem
        return await agent.reply(ids, None, seed, 0)

    return ask


def template_problem(agent: HuggingFaceAgent, toolset: Toolset, tool_format: str) -> str:
    """Returns why episodes refuse a model with a format; "" where they play it."""
    from coding_gym.text.chat import get_chat
    from coding_gym.text.tokenizers import get_tokenizer

    try:
        get_chat(get_tokenizer(agent.tokenizer), toolset.schemas, tool_format)
    except CodingGymError as problem:
        return str(problem)
    return ""


def best(probes: Sequence[FormatProbe]) -> FormatProbe | None:
    """Returns the probe with the largest share of readable calls; None where all have none."""
    chosen = max(probes, key=lambda probe: probe.parsed, default=None)
    return chosen if chosen and chosen.num_parsed else None
