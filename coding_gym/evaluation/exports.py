"""Runs in the formats of other tools, by name in `EXPORTS`.

| name | files in the folder |
|---|---|
| ``atif`` | ``<task>-<attempt>/agent/trajectory.json``: ATIF, in the folders of a Harbor job |
| ``inspect`` | ``part-<number>.eval``: logs of Inspect, for ``inspect view`` |
| ``sft`` | ``train.jsonl``: selected chats with their tools, for ``datasets.load_dataset`` |
| ``swebench`` | ``predictions-<attempt>.jsonl``: the predictions that SWE-bench's harness reads |

Only ``atif`` and ``inspect`` hold attempts that ended by an error; the others hold those with a
verdict.
"""

import inspect
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from coding_gym.arguments import check_arguments, is_number, unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation.atif import to_atif
from coding_gym.evaluation.metrics import without_index
from coding_gym.evaluation.report import run_tasks
from coding_gym.patch import Patch
from coding_gym.rewards import Sample, get_reward
from coding_gym.rollout.run_folder import RunFolder
from coding_gym.text.truncate import well_formed


def export(run: str | Path, format: str, out: str | Path, **options: Any) -> list[Path]:
    """Writes a run in another format and returns the files.

    Args:
        run: The run's folder.
        format: A name in `EXPORTS`.
        out: A folder, made where it is missing; files in it are replaced.
        **options: Arguments of that format's function.

    Raises:
        UnknownNameError: There is no such format.
        InvalidArgumentError: There is no run in the folder, an option is unknown or cannot be used,
            or nothing would be written.
    """
    if format not in EXPORTS:
        raise unknown_name("export format", format, EXPORTS)
    function = EXPORTS[format]
    check_arguments(f"the format {format}", options, [*inspect.signature(function).parameters][2:])
    return function(RunFolder.open(run), Path(out), **options)


def export_atif(run: RunFolder, out: Path) -> list[Path]:
    """Writes each attempt as an ATIF trajectory, as a trial that Harbor's viewer opens.

    The folder becomes a job of the folder in which it is: ``harbor view`` takes that one.
    """
    paths = []
    for trajectory in chain(run.trajectories(), run.errors()):
        if trajectory.messages:  # none where the episode could not start
            trial = out / f"{quote(trajectory.task_id, safe='')}-{trajectory.attempt}"
            paths.append(_write(trial / "agent/trajectory.json", [valid_json(to_atif(trajectory))]))
            agent = {"name": trajectory.agent, "model_name": trajectory.model or None}
            config = {"task": {"path": trajectory.task_id}, "trial_name": trial.name}
            _write(trial / "config.json", [valid_json(config | {"agent": agent})])
    return paths


def export_inspect(run: RunFolder, out: Path) -> list[Path]:
    """Writes the attempts as logs of Inspect; see `inspect_log.write_logs`."""
    from coding_gym.evaluation.inspect_log import write_logs  # the extra need not be installed

    return write_logs(run.config, chain(run.trajectories(), run.errors()), out)


def export_swebench(run: RunFolder, out: Path) -> list[Path]:
    """Writes predictions in the form that SWE-bench's harness reads, a file for each attempt.

    An attempt that ended by an error is no prediction: the harness would count an empty patch, as
    if the model had failed.
    """
    model = run.config["agent"].get("model") or run.config["agent"]["name"]
    lines = defaultdict[int, list[str]](list)
    for record in run.trajectories():
        row = {"instance_id": record.task_id, "model_name_or_path": model}
        # As ASCII: bytes of a patch that are not UTF-8 are lone surrogates, and are kept so.
        lines[record.attempt].append(json.dumps(row | {"model_patch": record.patch}))
    return [_write(out / f"predictions-{n}.jsonl", lines[n]) for n in sorted(lines)]


def export_sft(run: RunFolder, out: Path, *, min_score: float | None = None) -> list[Path]:
    """Writes chats for fine-tuning: ``messages`` and ``tools`` in OpenAI's form in each line.

    Lines have a ``score`` where ``min_score`` asks for one: CodeRepairRL's, 0.2 file match + 0.4
    code similarity + 0.4 test similarity, by `coding_gym.rewards.coderepairrl.curation_score`.

    Args:
        run: The run.
        out: The folder.
        min_score: The least score of an episode, from 0 to 1; None keeps those that are resolved.
    """
    if min_score is not None and not is_number(min_score):
        raise InvalidArgumentError(f"min_score must be a number, got {min_score!r}")
    tasks = {} if min_score is None else {task.task_id: task for task in run_tasks(run)}
    curation_score = get_reward("curation_score")
    lines: list[str] = []
    for trajectory in run.trajectories():
        row: dict[str, Any] = {"messages": trajectory.messages, "tools": trajectory.tools}
        row |= {"task_id": trajectory.task_id, "attempt": trajectory.attempt}
        row |= {"model": trajectory.model, "resolved": trajectory.resolved}
        is_wanted = trajectory.resolved
        if min_score is not None:
            task, patch = tasks[trajectory.task_id], Patch(without_index(trajectory.patch))
            gold, tests = without_index(task.gold_patch), without_index(task.test_patch)
            task = replace(task, gold_patch=gold, test_patch=tests)
            sample = Sample(task, trajectory.grade, patch)
            row["score"] = float(curation_score.value(sample))
            is_wanted = row["score"] >= min_score
        if is_wanted:
            lines.append(valid_json(row))
    if not lines:
        raise InvalidArgumentError(f"no episode of {run.path} is good enough")
    return [_write(out / "train.jsonl", lines)]


def valid_json(value: Any) -> str:
    """Returns JSON with U+FFFD in place of lone surrogates, which UTF-8 cannot encode."""
    return well_formed(json.dumps(value, ensure_ascii=False))


def _write(path: Path, lines: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


EXPORTS: Mapping[str, Callable[..., list[Path]]] = {
    "atif": export_atif,
    "inspect": export_inspect,
    "sft": export_sft,
    "swebench": export_swebench,
}
"""The function that writes each format, from a `RunFolder` into a folder, with its options."""
