"""``coding-gym check-model``: measures how well a model writes each tool format."""

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.table import Table

from coding_gym.action import Completion
from coding_gym.agents.chat import ChatAgent, Sampling
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.model_client import get_client
from coding_gym.agents.player import Player
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.errors import CodingGymError
from coding_gym.text.chat import get_chat
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import Toolset, get_toolset
from coding_gym.tools.formats import ReplyParser, check_format, explains_format, system_prompt

_FORMATS = ["auto", "json", "hermes", "pythonic"]
_ISSUES = (
    "`area(2, 3)` in shapes.py returns 5 instead of 6.",
    "The test tests/test_parser.py::test_empty fails with an IndexError.",
    "Dates before 1970 are formatted with the wrong year.",
    "`python -m tool --help` ends with a KeyError.",
)


def check_model(
    model: Annotated[
        str, typer.Option("--model", "-m", help="Name on the server; with --hf, a folder.")
    ],
    base_url: options.BaseUrl = None,
    hf: Annotated[
        bool, typer.Option("--hf", help="Load the model in this process with transformers.")
    ] = False,
    toolset: options.Toolset = "compact",
    tool_format: Annotated[
        list[str] | None,
        typer.Option(help=f"Format to test; may be repeated. Default: {', '.join(_FORMATS)}."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens per reply.")] = 128,
) -> None:
    """Print the tool formats that a model writes, its speed, and the command that evaluates it.

    No sandbox starts and no tool runs. The exit code is 1 if no reply contains a readable call.

    Example: coding-gym check-model --model FOLDER --hf

    Example: coding-gym check-model --base-url http://localhost:8000/v1 --model NAME
    """
    tools = get_toolset(toolset)
    probes = [_Probe(name) for name in tool_format or _FORMATS]
    for probe in probes:
        check_format(probe.tool_format, tools.schemas)
    sampling = Sampling(max_tokens=max_tokens)
    if hf:
        agent: Player = HuggingFaceAgent(model, sampling)
    else:
        agent = ChatAgent(get_client(base_url), model, sampling)
    asyncio.run(_ask(agent, probes, tools))
    best = _print_best(probes)
    terminal().print(f"maximum per reply: {max_tokens} tokens (--max-tokens)")
    if not best.num_parsed:
        terminal().print("no readable call; remedy: fine-tune the model on demonstrations")
        raise typer.Exit(1)
    source = ["--agent", "hf"] if hf else ["--base-url", base_url] if base_url else []
    command = ["coding-gym", "eval", *source, "--model", model, "--toolset", toolset]
    command += ["--tool-format", best.tool_format, "--sampling", f"max_tokens={max_tokens}"]
    terminal().print(f"{shlex.join(command)} --out runs/mine")


@dataclass(slots=True)
class _Probe:
    """The replies of a model to each of `_ISSUES` in one tool format."""

    tool_format: str
    replies: list[Completion] = field(default_factory=list)
    num_parsed: int = 0
    problem: str = ""  # the error that ended the probe, else the first unreadable reply

    async def ask(self, agent: Player, toolset: Toolset) -> None:
        """Requests the replies; a request lists the tools if the system prompt does not."""
        schemas = list(toolset.schemas)
        system = system_prompt(toolset, self.tool_format)
        parser = ReplyParser(self.tool_format, schemas, text_formats=toolset.text_formats)
        tools = {} if explains_format(self.tool_format) else {"tools": schemas}
        for seed, issue in enumerate(_ISSUES):
            chat = [{"role": "system", "content": system}, {"role": "user", "content": issue}]
            try:
                # Raises InvalidArgumentError if the template omits tools or rewrites messages.
                if isinstance(agent, HuggingFaceAgent):
                    get_chat(get_tokenizer(agent.tokenizer), schemas, self.tool_format)
                reply = await agent.chat(seed)({"messages": chat, **tools})
            except CodingGymError as problem:
                self.problem = str(problem)
                break
            action = parser.read(reply, calls=reply.calls)
            has_error = action.error or any(call.error for call in action.calls)
            is_parsed = bool(action.calls) and not has_error
            self.replies.append(reply)
            self.num_parsed += is_parsed
            self.problem = self.problem or ("" if is_parsed else str(reply))

    def row(self) -> list[str]:
        """Returns the cells of the format's row in the table."""
        calls = [reply.model_call for reply in self.replies if reply.model_call]
        num_with_ids = sum(bool(reply.token_ids) for reply in self.replies)
        num_truncated = sum(call.finish_reason == "length" for call in calls)
        num_tokens = sum(call.completion_tokens or 0 for call in calls)
        rate = num_tokens / (sum(call.duration_s for call in calls) or 1.0)
        shares = (f"{n}/{len(calls)}" for n in (self.num_parsed, num_with_ids, num_truncated))
        return [self.tool_format, *shares, f"{rate:.1f}"]


async def _ask(agent: Player, probes: Sequence[_Probe], toolset: Toolset) -> None:
    try:
        for probe in probes:
            await probe.ask(agent, toolset)
            terminal().print(f"{probe.tool_format}: {probe.row()[1]} calls readable", style="dim")
    finally:
        await agent.close()


def _print_best(probes: Sequence[_Probe]) -> _Probe:
    """Prints the results and the problem of each probe; returns the best probe."""
    table = Table("format", "readable calls", "token ids", "truncated", "tokens/s", box=None)
    for probe in probes:
        table.add_row(*probe.row())
    terminal().print(table)
    for probe in probes:
        if probe.problem:
            terminal().print(f"{probe.tool_format}: {probe.problem[:200]!r}")
    return max(probes, key=lambda probe: probe.num_parsed)
