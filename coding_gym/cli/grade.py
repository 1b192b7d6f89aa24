"""``coding-gym grade``: a file of predictions, to a number with an interval."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from coding_gym.agents.predictions import PatchAgent, read_predictions
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.cli.evaluate import play_run
from coding_gym.cli.runs import print_result
from coding_gym.errors import InvalidArgumentError
from coding_gym.rollout.run_folder import CONFIG, RunFolder
from coding_gym.text.truncate import ends

_MOST_GRADES = 20
_MOST_DETAIL = 1000  # characters of one grade; it has three tests, and an error at its end


def grade(
    predictions: Annotated[
        Path,
        typer.Argument(
            help="JSONL or JSON with instance_id, model_patch and model_name_or_path; several "
            "patches of one instance are attempts."
        ),
    ],
    source: options.Source = "bundled",
    split: options.Split = None,
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    concurrency: options.Concurrency = 2,
    sandbox: options.Sandbox = "auto",
    out: options.Folder = None,
) -> None:
    """Grade a predictions file by hidden tests; called again, it continues where it stopped.

    The folder is beside the predictions, unless --out names one.

    Example: coding-gym grade preds.jsonl --tasks rows.jsonl --environments swebench
    """
    patches, model = read_predictions(predictions)
    path = out or predictions.with_suffix(".graded")
    tasks = options.task_source(
        source, repositories, environments, split=split, task_ids=list(patches)
    )
    settings: dict[str, Any] = {
        "tasks": tasks,
        "episode": {"sandbox": options.parse_sandbox(sandbox)},
        "attempts": len(next(iter(patches.values()))),
    }
    if is_resumed := (path / CONFIG).exists():
        _check_same(RunFolder.open(path), settings)
    play_run(
        path,
        to_continue="to continue, call the same command again",
        show=_print_grades,
        player=PatchAgent("predictions", patches, model),
        concurrency=concurrency,
        resume=is_resumed,
        **({} if is_resumed else settings),
    )


def _check_same(run: RunFolder, settings: Mapping[str, Any]) -> None:
    """Refuses other tasks or another sandbox than those of the run that is continued."""
    old = {**run.config["tasks"], "sandbox": run.config["episode"].get("sandbox")}
    new = {**settings["tasks"], "sandbox": settings["episode"]["sandbox"]}
    old["task_ids"], new["task_ids"] = (sorted(one["task_ids"]) for one in (old, new))
    if changed := [name for name, value in new.items() if old.get(name) != value]:
        raise InvalidArgumentError(
            f"the run in {run.path} has another {', '.join(changed)}; give the same options, or "
            "name another folder by --out"
        )


def _print_grades(folder: RunFolder) -> bool:
    """Prints the grade of each patch where they are few, and the rates."""
    some = [*islice(folder.trajectories(), _MOST_GRADES + 1)]
    if len(some) <= _MOST_GRADES:
        for one in sorted(some, key=lambda each: (each.task_id, each.attempt)):
            mark = "✔" if one.resolved else "✘"
            reason = one.grade.reason if one.grade else one.error_class
            detail = " ".join((one.grade.detail if one.grade else one.error).split())
            text = ends(detail, _MOST_DETAIL, " … ")
            terminal().print(f"{mark} {one.task_id} {one.attempt}: {reason}; {text}")
    is_success = print_result(folder)
    terminal().print(f"why: coding-gym show {folder.path} TASK ATTEMPT")
    return is_success
