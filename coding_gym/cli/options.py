"""Options that several commands share, and the parsing of their values."""

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from coding_gym.errors import InvalidArgumentError, last_line
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.trajectory import Trajectory

MODEL, TASKS, SAMPLING, LIMITS = "Model", "Tasks", "Sampling", "Limits"
RUN, OUTPUT = "Run", "Output"
NUM_CORES = os.cpu_count() or 1


def option(heading: str, *names: str, **settings: Any) -> Any:
    """Returns an option that ``--help`` lists under a heading; settings as for `typer.Option`."""
    return typer.Option(*names, rich_help_panel=heading, **settings)


Source = Annotated[
    str,
    option(
        TASKS,
        "--tasks",
        help="'bundled', 'polyglot', a path to rows or task folders, or a "
        "Hugging Face dataset as owner/name.",
    ),
]
Sandbox = Annotated[
    str,
    option(
        RUN,
        help='Sandbox backend, or JSON such as \'{"limits": {"num_open_files": 99}}\'; see '
        "docs/sandboxes.md.",
    ),
]
Model = Annotated[str, option(MODEL, "--model", "-m", help="The model's name on the server.")]
BaseUrl = Annotated[
    str | None,
    option(
        MODEL,
        help="Address of an OpenAI-compatible server, such as http://localhost:8000/v1 of vLLM or "
        "llama.cpp on this machine; by default OpenAI's. Its key is OPENAI_API_KEY.",
    ),
]
Sampling = Annotated[
    str | None,
    option(
        SAMPLING,
        help="Parameters such as temperature=0.7,top_p=0.95,max_tokens=2048, or a JSON object; "
        "also top_k, min_p, reasoning_effort, thinking, and extra for other fields of the request. "
        "The default of max_tokens is 4096 per reply.",
    ),
]
Toolset = Annotated[str, option(MODEL, help="The tools of the agent; see docs/tools.md.")]
ToolFormat = Annotated[
    str, option(MODEL, help="How the agent writes tool calls; see docs/tools.md.")
]
MaxTurns = Annotated[int, option(LIMITS, min=1, help="Maximum actions of an episode.")]
TasksPerCore = Annotated[
    int,
    option(
        RUN,
        "--concurrency",
        "-c",
        min=1,
        show_default="one per core",
        help="Number of tasks that run at the same time.",
    ),
]
Folder = Annotated[Path | None, option(OUTPUT, "--out", "-o", help="The folder of the run.")]
Split = Annotated[str | None, option(TASKS, help="Only tasks of this split, such as test.")]
TaskIds = Annotated[
    list[str] | None, option(TASKS, "--task", "-t", help="Only this task; may be repeated.")
]
NumTasks = Annotated[
    int | None, option(TASKS, "--num-tasks", "-n", min=1, help="Only the first n tasks.")
]
Repositories = Annotated[
    Path | None,
    option(
        TASKS,
        help="A folder of local clones for the rows' repositories; by default GitHub.",
    ),
]
Environments = Annotated[
    Path | None,
    option(
        TASKS,
        help="A JSONL file with interpreter and install_commands by instance_id; or 'images', for "
        "the images that datasets publish.",
    ),
]
Limits = Annotated[
    str | None,
    option(
        LIMITS,
        help="Other limits of an episode, such as max_tool_calls=100,max_seconds=1200, or a JSON "
        "object; command_timeout_s limits one command. See docs/wrappers.md.",
    ),
]


def task_source(
    source: str, repositories: Path | None, environments: Path | None, **others: Any
) -> dict[str, Any]:
    """Returns the arguments of `load_tasks` that are set, with absolute paths."""
    arguments = {
        "source": absolute_source(source),
        "repositories": repositories and absolute(repositories),
        "environments": environments and absolute(environments, reserved=("images",)),
        **others,
    }
    return {name: value for name, value in arguments.items() if value is not None}


def absolute_source(source: str) -> str:
    """Returns a source of tasks with an absolute path; names do not change."""
    return absolute(source, reserved=("bundled", "polyglot"))


def absolute(name: str | Path, reserved: Collection[str] = ()) -> str:
    """Returns the absolute path of an existing file; other and reserved names do not change."""
    is_file = str(name) not in reserved and Path(name).exists()
    return str(Path(name).absolute() if is_file else name)


def parse_sandbox(text: str) -> str | dict[str, Any]:
    """Returns the ``sandbox`` argument of ``CodingRepair-v0``: a name, or options from JSON."""
    value = parse_object("--sandbox", text) if text.lstrip().startswith("{") else text
    SandboxOptions.parse(value)
    return value


def parse_object(name: str, text: str | None) -> dict[str, Any]:
    """Returns the settings in an option: JSON or ``key=value,key=value``; {} if None."""
    text = (text or "").strip()
    if text and not text.startswith("{"):
        pairs = [pair.partition("=") for pair in text.split(",")]
        if all(key.strip() and equals for key, equals, _ in pairs):
            return {key.strip(): _value(value.strip()) for key, _, value in pairs}
    try:
        value = json.loads(text or "{}")
        if not isinstance(value, dict):
            raise ValueError("not an object")
    except ValueError as problem:
        raise InvalidArgumentError(
            f"{name} must be key=value,key=value or a JSON object, got {text!r}: {problem}"
        ) from None
    return value


def parse_limits(text: str | None, **defaults: Any) -> dict[str, Any]:
    """Returns the arguments ``limits`` and ``command_timeout_s`` of an episode, if they are set."""
    limits = defaults | parse_object("--limits", text)
    timeout = {name: limits.pop(name) for name in ("command_timeout_s",) if name in limits}
    return {"limits": limits, **timeout}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def outcome(trajectory: Trajectory) -> str:
    """Returns the outcome of an episode in one line."""
    grade, name = trajectory.grade, f"{trajectory.task_id:<34} {trajectory.attempt} "
    if grade is None or trajectory.error_class:
        return f"✘ {name} {trajectory.error_class}: {last_line(trajectory.error)}"
    if grade.resolved:
        return f"✔ {name} {grade.detail}"
    replies = [turn for turn in trajectory.turns if turn.token_ids or not turn.exact]  # no `Stop`
    has_calls = not replies or any(turn.calls for turn in replies)
    no_calls = "" if has_calls else f"; none of {len(replies)} replies has a tool call"
    return f"✘ {name} {grade.detail or grade.reason}{no_calls}"
