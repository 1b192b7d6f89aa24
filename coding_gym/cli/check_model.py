"""``coding-gym check-model``: tests which tool formats a model can write."""

import asyncio
import shlex
import sys
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from coding_gym.agents.chat import Sampling
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.model_check import FormatProbe, local_ask, probe_format, server_ask
from coding_gym.agents.model_client import get_client
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.cli.options import MODEL, SAMPLING, option
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import check_format

_FORMATS = ["auto", "json", "hermes", "pythonic"]


def check_model(
    model: Annotated[
        str,
        option(MODEL, "--model", "-m", help="The server's name of the model; with --hf a folder."),
    ],
    base_url: options.BaseUrl = None,
    hf: Annotated[
        bool, option(MODEL, "--hf", help="Load the model in this process with transformers.")
    ] = False,
    toolset: options.Toolset = "compact",
    tool_format: Annotated[
        list[str] | None,
        option(MODEL, help=f"Only this format; may be repeated. By default {_FORMATS}."),
    ] = None,
    max_tokens: Annotated[int, option(SAMPLING, min=1, help="Maximum tokens of a reply.")] = 128,
) -> None:
    """Print which tool formats a model writes, how fast, and which command evaluates it.

    No sandbox is opened and no tool runs. Exits with 1 if no reply contains a readable call.

    Example: coding-gym check-model --model FOLDER --hf

    Example: coding-gym check-model --base-url http://localhost:8000/v1 --model NAME
    """
    tools, formats = get_toolset(toolset), tool_format or _FORMATS
    for name in formats:
        check_format(name, tools.schemas)

    async def probe() -> tuple[list[FormatProbe], int | None]:
        sampling = Sampling(max_tokens=max_tokens)
        if hf:
            agent = HuggingFaceAgent(model, sampling)
            ask = local_ask(agent, tools)
            return [await probe_format(ask, tools, name) for name in formats], agent.context
        client = get_client(base_url)
        try:
            ask = server_ask(client, model, sampling, tools)
            probes = [await probe_format(ask, tools, name) for name in formats]
            return probes, await client.context(model)
        finally:
            await client.close()

    console = terminal()
    probes, context = asyncio.run(probe())
    console.print(_table(probes))
    limit = f"{context:,} tokens" if context and context < sys.maxsize else "unknown"
    console.print(f"context: {limit}; a reply: at most {max_tokens} tokens (--max-tokens)")
    for one in probes:
        if one.problem:
            console.print(Text(f"{one.tool_format}: {one.problem[:200]!r}"))
    best = max(probes, key=lambda one: one.num_parsed / max(len(one.replies), 1))
    if not best.num_parsed:
        console.print(
            "no reply contains a readable call: fine-tune the model on demonstrations first"
        )
        raise typer.Exit(1)
    where = ["--agent", "hf"] if hf else ["--base-url", base_url] if base_url else []
    command = ["coding-gym", "eval", *where, "--model", model, "--toolset", toolset]
    command += ["--tool-format", best.tool_format, "--sampling", f"max_tokens={max_tokens}"]
    console.print(Text(f"{shlex.join(command)} --out runs/mine"), soft_wrap=True)


def _table(probes: list[FormatProbe]) -> Table:
    table = Table("format", "readable calls", "ids", "cut", "tokens/s", box=None)
    for probe in probes:
        num_with_ids = sum(bool(getattr(reply, "token_ids", ())) for reply, _ in probe.replies)
        calls = [call for _, call in probe.replies]
        num_cut = sum(call.finish_reason == "length" for call in calls)
        counts = (probe.num_parsed, num_with_ids, num_cut)
        duration_s = sum(call.duration_s for call in calls)
        rate = sum(call.completion_tokens or 0 for call in calls) / (duration_s or 1.0)
        shares = (f"{count}/{len(calls)}" for count in counts)
        table.add_row(probe.tool_format, *shares, f"{rate:.1f}")
    return table
