"""Exports runs to the formats of other tools; `EXPORTS` maps each name to its function.

| name | files in the folder |
|---|---|
| ``atif`` | ``<task>-<attempt>/agent/trajectory.json``: ATIF, in the folders of a Harbor job |
| ``inspect`` | ``part-<number>.eval``: logs of Inspect, for ``inspect view`` |
| ``sft`` | ``train.jsonl``: chats and tools of resolved attempts, for ``datasets.load_dataset`` |
| ``swebench`` | ``predictions-<attempt>.jsonl``: the predictions that SWE-bench's harness reads |

``atif`` and ``inspect`` include attempts that ended with an error; ``sft`` and ``swebench`` include
only attempts with a verdict.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from coding_gym.arguments import unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation.atif import to_atif
from coding_gym.run_folder import RunFolder
from coding_gym.text.truncate import well_formed


def export(run: str | Path, format: str, out: str | Path) -> list[Path]:
    """Writes a run in another format and returns the files.

    Args:
        run: The run folder.
        format: A name in `EXPORTS`.
        out: The output folder, created if missing; files of the same names are replaced.

    Raises:
        UnknownNameError: `EXPORTS` does not contain the format.
        InvalidArgumentError: The folder contains no run, or no attempt is resolved (``sft``).
    """
    if format not in EXPORTS:
        raise unknown_name("export format", format, EXPORTS)
    return EXPORTS[format](RunFolder.open(run), Path(out))


def export_atif(run: RunFolder, out: Path) -> list[Path]:
    """Writes each attempt that has messages as an ATIF trajectory, in a Harbor trial's folder.

    ``out`` becomes a Harbor job; ``harbor view`` opens the parent folder of ``out``.
    """
    paths = []
    for trajectory in chain(run.trajectories(), run.errors()):
        if trajectory.messages:  # an episode that could not start has no messages
            trial = out / f"{quote(trajectory.task_id, safe='')}-{trajectory.attempt}"
            paths.append(_write(trial / "agent/trajectory.json", [valid_json(to_atif(trajectory))]))
            agent = {"name": trajectory.agent, "model_name": trajectory.model or None}
            config = {"task": {"path": trajectory.task_id}, "trial_name": trial.name}
            _write(trial / "config.json", [valid_json(config | {"agent": agent})])
    return paths


def export_inspect(run: RunFolder, out: Path) -> list[Path]:
    """Writes the attempts as logs of Inspect; see `inspect_log.write_logs`."""
    from coding_gym.evaluation.inspect_log import write_logs  # requires the extra `inspect`

    return write_logs(run.config, chain(run.trajectories(), run.errors()), out)


def export_swebench(run: RunFolder, out: Path) -> list[Path]:
    """Writes predictions for SWE-bench's harness, one file per attempt number.

    Attempts that ended with an error are excluded, because the harness would count each of them as
    an empty patch of the model.
    """
    model = run.config["agent"].get("model") or run.config["agent"]["name"]
    lines = defaultdict[int, list[str]](list)
    for record in run.trajectories():
        row = {"instance_id": record.task_id, "model_name_or_path": model}
        # ASCII escapes preserve lone surrogates, which represent bytes that are not UTF-8.
        lines[record.attempt].append(json.dumps(row | {"model_patch": record.patch}))
    return [_write(out / f"predictions-{n}.jsonl", lines[n]) for n in sorted(lines)]


def export_sft(run: RunFolder, out: Path) -> list[Path]:
    """Writes resolved attempts for fine-tuning: ``messages`` and ``tools`` in OpenAI's format.

    Raises:
        InvalidArgumentError: No attempt is resolved.
    """
    lines = [
        valid_json(
            {
                "messages": record.messages,
                "tools": record.tools,
                "task_id": record.task_id,
                "attempt": record.attempt,
                "model": record.model,
            }
        )
        for record in run.trajectories()
        if record.resolved
    ]
    if not lines:
        raise InvalidArgumentError(f"sft needs resolved attempts, got none in {run.path}; use atif")
    return [_write(out / "train.jsonl", lines)]


def valid_json(value: Any) -> str:
    """Returns a value as JSON; U+FFFD replaces lone surrogates, which UTF-8 cannot encode."""
    return well_formed(json.dumps(value, ensure_ascii=False))


def _write(path: Path, lines: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


EXPORTS: Mapping[str, Callable[[RunFolder, Path], list[Path]]] = {
    "atif": export_atif,
    "inspect": export_inspect,
    "sft": export_sft,
    "swebench": export_swebench,
}
"""The function that writes each format, from a `RunFolder` into a folder."""
