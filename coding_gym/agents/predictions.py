"""An agent that applies a prediction to each task."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coding_gym.action import Stop
from coding_gym.agents.live_episode import LiveEpisode, Player
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError, PatchError
from coding_gym.grade import GradeReason
from coding_gym.json_record import JsonRecord, read_record
from coding_gym.patch import Patch
from coding_gym.tasks.rows import read_json, read_jsonl
from coding_gym.workspace import apply_patch, context_advice, normalize

Patches = Mapping[str, Sequence[str]]
"""The patches of each task, by its id; the number of an attempt is the index."""


class PatchAgent(Player):
    """Applies patches as `coding_gym.workspace.normalize` reads them, and has them graded.

    A patch that does not apply leaves the tree as it was, so the attempt is not resolved. So does
    an empty one.

    Args:
        name: The name in the records.
        patches: For each task the patch of each attempt.
        model: Who made them, for the records.
    """

    def __init__(self, name: str, patches: Patches, model: str = "") -> None:
        self.name = name
        self.model = model
        self._patches = patches

    def describe(self) -> Mapping[str, Any]:
        """Returns a digest of the patches, so that a run continues with the same ones only."""
        text = json.dumps(self._patches, sort_keys=True)
        return {"patches": hashlib.sha256(text.encode()).hexdigest()[:16]}

    async def play(self, live: LiveEpisode) -> None:
        """Applies the patch of this attempt."""
        patch = self._patches[live.task.task_id][live.attempt]
        problem = await live.in_thread(_apply, live.episode, patch) if patch.strip() else ""
        done = "the patch is applied" if patch.strip() else "the patch is empty"
        await live.step(Stop(problem or done))
        grade = live.episode.grade
        if problem and grade and grade.reason is GradeReason.EMPTY_PATCH:  # the tree is as it was
            live.episode.refuse_patch(patch, problem)
        grade = live.episode.grade
        if grade and not grade.resolved and (advice := context_advice(Patch(patch))):
            live.episode.grade = replace(grade, detail=f"{advice}; {grade.detail}")


def _apply(episode: Episode, text: str) -> str:
    """Applies a patch to the tree; returns why it cannot be applied, or ""."""
    with episode.access() as context:
        if episode.template is None:
            return ""
        try:
            apply_patch(context.sandbox, normalize(context.sandbox, episode.template, Patch(text)))
        except PatchError as error:
            return str(error)
        return ""


@dataclass(frozen=True, slots=True)
class _Prediction(JsonRecord):
    instance_id: str
    model_patch: str | None
    model_name_or_path: str = ""


def read_predictions(path: str | Path) -> tuple[dict[str, list[str]], str]:
    """Reads a predictions file in SWE-bench's form.

    That is a ``.json`` file of a list, or of an object by ``instance_id``, or else JSONL, of
    objects with ``instance_id``, ``model_patch`` (null counts as empty) and ``model_name_or_path``.
    Several objects of one id are attempts, in their order.

    Returns:
        The patches of each task, and the model's name ("" where rows name none).

    Raises:
        InvalidArgumentError, InvalidTaskError: The file cannot be read, and the message names row
            and field; or it has patches of several models, or more of some tasks than of others.
    """
    path = Path(path)
    patches: dict[str, list[str]] = {}
    models = set()
    for where, row in _rows(path):
        one = read_record(_Prediction, row, where)
        patches.setdefault(one.instance_id, []).append(one.model_patch or "")
        models.add(one.model_name_or_path)
    if not patches:
        raise InvalidArgumentError(f"{path} has no predictions")
    if len(models) > 1:
        raise InvalidArgumentError(
            f"{path} has patches of {len(models)} models ({', '.join(sorted(models)[:3])}); give "
            "each model a file of its own"
        )
    fewest, most = (pick(patches, key=lambda key: len(patches[key])) for pick in (min, max))
    if len(patches[fewest]) < len(patches[most]):
        raise InvalidArgumentError(
            f"{path} has {len(patches[most])} patches of {most} and {len(patches[fewest])} of "
            f"{fewest}; give each instance as many, an empty one where an attempt made none"
        )
    return patches, models.pop()


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    for where, value in read_json(path) if path.suffix == ".json" else read_jsonl(path):
        is_whole_file = where == str(path)
        if is_whole_file and isinstance(value, dict) and "instance_id" not in value:
            yield from ((f"{where} item {n}", row) for n, row in enumerate(value.values(), 1))
        else:
            yield where, value
