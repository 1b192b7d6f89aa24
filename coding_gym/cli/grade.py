"""``coding-gym grade``: grades a file of predictions, or a diff."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coding_gym.agents.predictions import PatchAgent, read_predictions
from coding_gym.cli import options
from coding_gym.cli.evaluate import play_run
from coding_gym.errors import InvalidArgumentError
from coding_gym.run_folder import CONFIG, RunFolder
from coding_gym.tasks import load_tasks
from coding_gym.tasks.rows import read_text


def grade(
    predictions: Annotated[
        Path, typer.Argument(help="JSON or JSONL in SWE-bench's form, or a .patch or .diff file.")
    ],
    source: options.Source = "bundled",
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    concurrency: options.TasksPerCore = options.NUM_CORES,
    sandbox: options.Sandbox = "auto",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder.")] = None,
) -> None:
    """Grade a predictions file with hidden tests; the same command continues a stopped run.

    A diff needs --tasks with one task. The default run folder is next to the predictions file.

    Example: coding-gym grade preds.jsonl --tasks rows.jsonl --environments swebench
    """
    tasks = options.task_source(source, repositories, environments)
    if predictions.suffix in (".patch", ".diff"):
        task_id, *others = (task.task_id for task in load_tasks(**tasks, limit=2))
        if others:
            raise InvalidArgumentError(
                f"--tasks must have one task for a diff, got several in {source}; name a task's "
                "folder, or write predictions with instance_id and model_patch"
            )
        patches, model = {task_id: [read_text(predictions, "surrogateescape")]}, ""
    else:
        patches, model = read_predictions(predictions)
    path = out or predictions.with_suffix(".graded")
    settings: dict[str, Any] = {"resume": True}
    backend = options.parse_sandbox(sandbox)
    if not (path / CONFIG).exists():
        attempts = len(next(iter(patches.values())))
        settings = {"attempts": attempts, "episode": {"sandbox": backend}}
    elif backend != (recorded := RunFolder.open(path).config["episode"].get("sandbox", "auto")):
        raise InvalidArgumentError(
            f"--sandbox must be {recorded!r}, as in the run in {path}, got {backend!r}; name a new "
            "folder (--out)"
        )
    play_run(
        path,
        next_command="the same command again",
        player=PatchAgent("predictions", patches, model),
        tasks=tasks | {"task_ids": list(patches)},
        concurrency=concurrency,
        **settings,
    )
