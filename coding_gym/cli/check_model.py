"""``coding-gym check-model``: measures how well a model writes each tool format."""

import asyncio
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from coding_gym.agents.built_in import get_player
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.episode import EpisodeConfig
from coding_gym.rollout import Runner
from coding_gym.tasks import load_tasks
from coding_gym.trajectory import Trajectory, Turn

_FORMATS = ["auto", "json", "hermes", "pythonic"]
_NUM_TASKS = 4


def check_model(
    model: options.Model,
    agent: Annotated[
        Literal["chat", "hf"],
        typer.Option("--agent", "-a", help="'chat': model on a server; 'hf': model in a folder."),
    ] = "chat",
    base_url: options.BaseUrl = None,
    toolset: options.Toolset = "nano",
    tool_format: Annotated[
        list[str] | None,
        typer.Option(help=f"Format to test; may be repeated. Default: {', '.join(_FORMATS)}."),
    ] = None,
    sampling: options.Sampling = None,
) -> None:
    """Measure the tool calls and the speed of a model; print a command that evaluates the model.

    The model plays the first turn of four bundled tasks in each format, in a sandbox, with at most
    128 tokens per reply. The exit code is 1 if no reply contains a readable call.

    Example: coding-gym check-model --agent hf --model FOLDER

    Example: coding-gym check-model --base-url http://localhost:8000/v1 --model NAME
    """
    sampling_settings = {"max_tokens": 128} | options.parse_object("--sampling", sampling)
    episode: dict[str, Any] = {"toolset": toolset, "max_turns": 1, "grading": "none"}
    if agent == "hf":
        episode["tokenizer"] = f"hf:{model}"
    tasks = load_tasks("bundled", limit=_NUM_TASKS)
    names = tool_format or _FORMATS
    configs = [EpisodeConfig.from_config(tasks=tasks, tool_format=n, **episode) for n in names]
    player = get_player(agent, model=model, base_url=base_url, sampling=sampling_settings)
    records: dict[str, list[Trajectory]] = {name: [] for name in names}
    for config in configs:
        results = records[config.tool_format]
        runner = Runner(config=config, player=player, max_lost=1)
        asyncio.run(runner.run([(task, 0) for task in tasks], results.append))
        terminal().print(f"{config.tool_format}: {_num_readable(results)} readable", style="dim")
    _print_results(records)
    terminal().print(f"settings of these requests: {json.dumps(sampling_settings)} (--sampling)")
    best = max(records, key=lambda name: _num_readable(records[name]))
    if not _num_readable(records[best]):
        has_replies = any(map(_replies, records.values()))
        remedy = "fine-tune the model on demonstrations" if has_replies else "fix the error above"
        terminal().print(f"no readable call; remedy: {remedy}")
        raise typer.Exit(1)
    command = ["coding-gym", "eval", "--agent", agent, "--model", model]
    command += ["--base-url", base_url] if base_url else []
    command += ["--tool-format", best]
    command += ["--toolset", toolset] if toolset != "nano" else []  # the default of eval
    command += ["--sampling", sampling] if sampling else []
    terminal().print(f"{shlex.join(command)} --out runs/mine")


def _print_results(records: Mapping[str, Sequence[Trajectory]]) -> None:
    """Prints a table of the formats, and the first error or unreadable reply of each format."""
    table = Table("format", "readable calls", "token ids", "truncated", "tokens/s", box=None)
    formats_by_problem: dict[str, list[str]] = {}
    for name, results in records.items():
        turns = _replies(results)
        calls = [turn.model_call for turn in turns if turn.model_call]
        num_truncated = sum(call.finish_reason == "length" for call in calls)
        num_tokens = sum(call.completion_tokens or 0 for call in calls)
        rate = num_tokens / (sum(call.duration_s for call in calls) or 1.0)
        counts = (_num_readable(results), sum(turn.exact for turn in turns), num_truncated)
        table.add_row(name, *(f"{n}/{len(turns)}" for n in counts), f"{rate:.1f}")
        texts = [record.error for record in results if record.error]
        # The last turn of a prompt that exceeds the context is a `Stop` with the error.
        texts += [t.action for record in results for t in record.turns if not _is_readable(t)]
        for text in texts[:1]:
            formats_by_problem.setdefault(text[:200], []).append(name)
    terminal().print(table)
    for text, names in formats_by_problem.items():
        terminal().print(f"{', '.join(names)}: {text!r}")


def _replies(records: Sequence[Trajectory]) -> list[Turn]:
    """Returns the turns that have a reply of the model."""
    return [turn for record in records for turn in record.turns if turn.model_call]


def _is_readable(turn: Turn) -> bool:
    return bool(turn.calls) and not any(call.error for call in turn.calls)


def _num_readable(records: Sequence[Trajectory]) -> int:
    return sum(map(_is_readable, _replies(records)))
