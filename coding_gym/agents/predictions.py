"""An agent whose patches come from a predictions file."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coding_gym.agents.player import LiveEpisode, Player
from coding_gym.errors import InvalidArgumentError
from coding_gym.json_record import JsonRecord
from coding_gym.patch import Patch
from coding_gym.tasks.rows import read_json, read_jsonl

Patches = Mapping[str, Sequence[str]]
"""The patches of each task, by its id; the index is the number of the attempt."""


class PatchAgent(Player):
    """Ends each episode with a patch, which is graded instead of the tree, as in SWE-bench.

    Args:
        name: The agent's name in records.
        patches: The patches of each task, one per attempt.
        model: The model that wrote the patches, for the records.
    """

    def __init__(self, name: str, patches: Patches, model: str = "") -> None:
        self.name = name
        self.model = model
        self._patches = patches

    def describe(self) -> Mapping[str, Any]:
        """Returns a digest of the patches; a run cannot be resumed with other patches."""
        text = json.dumps(self._patches, sort_keys=True)
        return {"patches": hashlib.sha256(text.encode()).hexdigest()[:16]}

    async def play(self, live: LiveEpisode) -> None:
        """Ends the episode with the patch of this attempt."""
        await live.start()
        live.episode.prediction = Patch(self._patches[live.episode.task.task_id][live.attempt])


@dataclass(frozen=True, slots=True)
class _Prediction(JsonRecord):
    instance_id: str
    model_patch: str | None
    model_name_or_path: str = ""


def read_predictions(path: str | Path) -> tuple[dict[str, list[str]], str]:
    """Reads a predictions file in SWE-bench's form.

    A ``.json`` file has a list of rows, or an object with the rows as values; any other file is
    JSONL. Rows have ``instance_id``, ``model_patch`` (null counts as empty) and
    ``model_name_or_path``. Rows with the same id are the attempts at this task, in file order.

    Returns:
        The patches of each task, and the model's name ("" if the rows have no name).

    Raises:
        InvalidArgumentError, InvalidTaskError: The file cannot be read (the message names row
            and field), has patches of several models, or has different numbers of patches per task.
    """
    path = Path(path)
    patches: dict[str, list[str]] = {}
    models = set()
    for location, row in _rows(path):
        prediction = _Prediction.from_json(row, location)
        patches.setdefault(prediction.instance_id, []).append(prediction.model_patch or "")
        models.add(prediction.model_name_or_path)
    if not patches:
        raise InvalidArgumentError(f"{path} must have at least one prediction, got none")
    if len(models) > 1:
        raise InvalidArgumentError(
            f"{path} has patches of {len(models)} models ({', '.join(sorted(models)[:3])}); write "
            "one file per model"
        )
    fewest_id = min(patches, key=lambda task_id: len(patches[task_id]))
    most_id = max(patches, key=lambda task_id: len(patches[task_id]))
    if len(patches[fewest_id]) < len(patches[most_id]):
        raise InvalidArgumentError(
            f"{path} has {len(patches[most_id])} patches of {most_id} and "
            f"{len(patches[fewest_id])} of {fewest_id}; each instance needs the same number; "
            "correct misspelt ids, or add empty patches"
        )
    return patches, models.pop()


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    for location, value in read_json(path) if path.suffix == ".json" else read_jsonl(path):
        is_whole_file = location == str(path)
        if is_whole_file and isinstance(value, dict) and "instance_id" not in value:
            yield from ((f"{location} item {n}", row) for n, row in enumerate(value.values(), 1))
        else:
            yield location, value
