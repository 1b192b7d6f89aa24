"""``coding-gym grade``: grades a file of predictions."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coding_gym.agents.predictions import PatchAgent, read_predictions
from coding_gym.cli import options
from coding_gym.cli.evaluate import play_run
from coding_gym.errors import InvalidArgumentError
from coding_gym.rollout.run_folder import CONFIG, RunFolder


def grade(
    predictions: Annotated[
        Path, typer.Argument(help="Rows with instance_id, model_patch and model_name_or_path.")
    ],
    source: options.Source = "bundled",
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    concurrency: options.TasksPerCore = options.NUM_CORES,
    sandbox: options.Sandbox = "auto",
    out: options.Folder = None,
) -> None:
    """Grade a predictions file with hidden tests; the same command continues a stopped run.

    By default the run folder is next to the predictions file.

    Example: coding-gym grade preds.jsonl --tasks rows.jsonl --environments swebench
    """
    patches, model = read_predictions(predictions)
    path = out or predictions.with_suffix(".graded")
    tasks = options.task_source(source, repositories, environments, task_ids=list(patches))
    settings: dict[str, Any] = {"resume": True}
    backend = options.parse_sandbox(sandbox)
    if not (path / CONFIG).exists():
        attempts = len(next(iter(patches.values())))
        settings = {"attempts": attempts, "episode": {"sandbox": backend}}
    elif backend != (old := RunFolder.open(path).config["episode"].get("sandbox", "auto")):
        raise InvalidArgumentError(
            f"--sandbox must be {old!r}, as in the run in {path}, got {backend!r}; use a new "
            "folder (--out)"
        )
    play_run(
        path,
        next_command="the same command again",
        player=PatchAgent("predictions", patches, model),
        tasks=tasks,
        concurrency=concurrency,
        **settings,
    )
