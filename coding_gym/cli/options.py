"""Options that several commands share, and functions that parse their values."""

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from coding_gym.errors import InvalidArgumentError
from coding_gym.program_output import last_line
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.tools import toolset_names
from coding_gym.tools.formats import TOOL_FORMATS
from coding_gym.trajectory import Trajectory

NUM_CORES = os.cpu_count() or 1

Source = Annotated[
    str, typer.Option("--tasks", help="'bundled', 'polyglot', a path, or a dataset's owner/name.")
]
Sandbox = Annotated[
    str, typer.Option(help="'auto', 'namespace', 'landlock', 'docker', or options in JSON.")
]
Model = Annotated[str, typer.Option("--model", "-m", help="Name of the model on the server.")]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="URL of an OpenAI-compatible server; OPENAI_API_KEY sets its key."),
]
Sampling = Annotated[
    str | None, typer.Option(help="Settings of requests, such as temperature=0.7, or JSON.")
]
Toolset = Annotated[str, typer.Option(help=f"Toolset: {', '.join(toolset_names())}.")]
ToolFormat = Annotated[str, typer.Option(help=f"Format of calls: {', '.join(TOOL_FORMATS)}.")]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")]
MaxTurns = Annotated[int, typer.Option(min=1, help="Maximum number of actions per episode.")]
TasksPerCore = Annotated[
    int,
    typer.Option(
        "--concurrency",
        "-c",
        min=1,
        show_default="one per core",
        help="Number of tasks to run at the same time.",
    ),
]
Split = Annotated[str | None, typer.Option(help="Only tasks of this split, such as test.")]
TaskIds = Annotated[
    list[str] | None, typer.Option("--task", "-t", help="Only this task id; may be repeated.")
]
NumTasks = Annotated[
    int | None, typer.Option("--num-tasks", "-n", min=1, help="Only the first n tasks.")
]
Repositories = Annotated[
    Path | None,
    typer.Option(help="Folder with local clones of the rows' repositories; default: GitHub."),
]
Environments = Annotated[
    Path | None,
    typer.Option(help="JSONL file of environments, 'swebench', or 'images': the rows' images."),
]
Limits = Annotated[
    str | None, typer.Option(help="Limits of an episode, such as max_seconds=900, or JSON.")
]


def task_source(
    source: str,
    repositories: Path | None = None,
    environments: Path | None = None,
    split: str | None = None,
    task_ids: list[str] | None = None,
    num_tasks: int | None = None,
) -> dict[str, Any]:
    """Returns the arguments of `load_tasks` that are not None, with absolute paths."""
    arguments = {
        "source": absolute(source, reserved=("bundled", "polyglot")),
        "repositories": repositories and absolute(repositories),
        "environments": environments and absolute(environments, reserved=("swebench", "images")),
        "split": split,
        "task_ids": task_ids or None,
        "limit": num_tasks,
    }
    return {name: value for name, value in arguments.items() if value is not None}


def absolute(name: str | Path, reserved: Collection[str] = ()) -> str:
    """Returns the absolute path if ``name`` is not reserved and exists, else ``name``."""
    is_path = str(name) not in reserved and Path(name).exists()
    return str(Path(name).absolute() if is_path else name)


def parse_sandbox(text: str) -> str | dict[str, Any]:
    """Returns the ``sandbox`` argument of an episode: a backend's name, or options from JSON."""
    value = parse_object("--sandbox", text) if text.lstrip().startswith("{") else text
    SandboxOptions.parse(value)
    return value


def parse_object(name: str, text: str | None) -> dict[str, Any]:
    """Returns the settings in an option's text: JSON or ``key=value,…``; {} if the text is None."""
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
    """Returns an episode's argument ``limits``, and ``command_timeout_s`` if the text sets it."""
    limits = defaults | parse_object("--limits", text)
    timeout = {name: limits.pop(name) for name in ("command_timeout_s",) if name in limits}
    return {"limits": limits, **timeout}


def _value(text: str) -> Any:
    """Returns the value of a JSON text; returns other texts unchanged."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def outcome(trajectory: Trajectory) -> str:
    """Returns the outcome of an episode in one line."""
    grade, label = trajectory.grade, f"{trajectory.task_id:<34} {trajectory.attempt} "
    if grade is None or trajectory.error_class:
        return f"✘ {label} {trajectory.error_class}: {last_line(trajectory.error)}"
    if grade.resolved:
        return f"✔ {label} {grade.detail}"
    return f"✘ {label} {grade.detail or grade.reason}"
