"""``coding-gym check-model``: which tool formats a model writes, before any sandbox opens."""

import asyncio
import shlex
import sys
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from coding_gym.agents.chat import Sampling
from coding_gym.agents.hf import HuggingFaceAgent
from coding_gym.agents.model_check import (
    Ask,
    FormatProbe,
    asking_model,
    asking_server,
    best,
    probe_format,
    template_problem,
)
from coding_gym.agents.model_client import get_client
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.cli.options import MODEL, SAMPLING, option
from coding_gym.tools import Toolset, get_toolset
from coding_gym.tools.formats import check_format

_FORMATS = ["auto", "json", "hermes", "pythonic"]


def check_model(
    model: Annotated[
        str, option(MODEL, "--model", "-m", help="A folder with --hf; else the server's name.")
    ],
    base_url: options.BaseUrl = None,
    hf: Annotated[
        bool, option(MODEL, "--hf", help="Load the model in this process, by transformers.")
    ] = False,
    toolset: options.Toolset = "compact",
    tool_format: Annotated[
        list[str] | None,
        option(MODEL, help=f"Only this format; may be repeated. By default {_FORMATS}."),
    ] = None,
    replies: Annotated[int, option(SAMPLING, min=1, help="Replies in each format.")] = 4,
    max_tokens: Annotated[int, option(SAMPLING, min=1, help="Most tokens of a reply.")] = 128,
) -> None:
    """Say which tool formats a model writes, how fast, and which command evaluates it.

    No sandbox is opened and no tool runs. Exits with 1 where no reply holds a readable call.

    Example: coding-gym check-model --model FOLDER --hf

    Example: coding-gym check-model --base-url http://localhost:8000/v1 --model NAME
    """
    tools, formats = get_toolset(toolset), tool_format or _FORMATS
    for name in formats:
        check_format(name, tools.schemas)
    sampling = Sampling(max_tokens=max_tokens)
    console = terminal()
    if hf:
        agent = HuggingFaceAgent(model, sampling)
        for name in formats:
            if problem := template_problem(agent, tools, name):
                console.print(Text(f"{name}: episodes refuse it: {problem}"))
        probes = asyncio.run(_probe(asking_model(agent), tools, formats, replies))
        context = agent.context
    else:
        probes, context = asyncio.run(
            _probe_server(base_url, model, sampling, tools, formats, replies)
        )
    console.print(_table(probes))
    known = f"{context:,} tokens" if context and context < sys.maxsize else "unknown"
    console.print(f"context: {known}; a reply: at most {max_tokens} tokens (--max-tokens)")
    for probe in probes:
        if problem := probe.error or probe.example:
            console.print(Text(f"{probe.tool_format}: {problem[:200]!r}"))
    chosen = best(probes)
    if chosen is None:
        console.print("no reply holds a readable call: fine-tune the model on demonstrations first")
        raise typer.Exit(1)
    where = ["--agent", "hf"] if hf else ["--base-url", base_url] if base_url else []
    command = ["coding-gym", "eval", *where, "--model", model, "--toolset", toolset]
    command += ["--tool-format", chosen.tool_format, "--sampling", f"max_tokens={max_tokens}"]
    console.print(Text(f"{shlex.join(command)} --out runs/mine"), soft_wrap=True)


async def _probe(ask: Ask, toolset: Toolset, formats: list[str], replies: int) -> list[FormatProbe]:
    """Probes each format in turn."""
    return [await probe_format(ask, toolset, name, replies) for name in formats]


async def _probe_server(
    base_url: str | None, model: str, sampling: Sampling, *probe: Any
) -> tuple[list[FormatProbe], int | None]:
    """Probes each format by a server; returns its context length too, if it states one."""
    client = get_client(base_url)
    try:
        probes = await _probe(asking_server(client, model, sampling), *probe)
        return probes, await client.context(model)
    finally:
        await client.close()


def _table(probes: list[FormatProbe]) -> Table:
    """Returns a row for each format."""
    table = Table("format", "readable calls", "ids", "cut", "tokens/s", box=None)
    for probe in probes:
        rate = probe.num_tokens / probe.duration_s if probe.duration_s else 0.0
        of = f"/{probe.num_replies}"
        counts = (probe.num_parsed, probe.num_with_ids, probe.num_cut)
        table.add_row(probe.tool_format, *(f"{count}{of}" for count in counts), f"{rate:.1f}")
    return table
