"""An agent that applies a given patch to each task: predictions, gold patches, empty ones."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coding_gym.action import Stop
from coding_gym.agents.live_episode import LiveEpisode
from coding_gym.episode import Episode
from coding_gym.errors import InvalidArgumentError, UnknownTaskError

_PATCH = "/tmp/prediction.patch"  # noqa: S108 - a path inside the sandbox
# SWE-bench's harness tries these in this order (``run_evaluation.py``, ``GIT_APPLY_CMDS``).
_COMMANDS = (
    f"git apply --verbose {_PATCH}",
    f"git apply --verbose --reject {_PATCH}",
    f"patch --batch --fuzz=5 -p1 -i {_PATCH}",
)
_RESET = f"git checkout -q . && git clean -fdq; rm -f {_PATCH}"

Patches = Mapping[str, Sequence[str]]
"""The patches of each task, by its id; the number of an attempt is the index."""


class PatchAgent:
    """Applies patches as SWE-bench does, and has them graded.

    A patch that does not apply, even with SWE-bench's two fallbacks, leaves the tree as it was, so
    the attempt is not resolved. So does an empty one.

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
        """Returns nothing: the patches are the records' own."""
        return {}

    async def play(self, live: LiveEpisode) -> None:
        """Applies the patch of this attempt."""
        patch = self._patches[live.task.task_id][live.attempt]
        problem = await live.in_thread(_apply, live.episode, patch) if patch.strip() else ""
        await live.step(Stop(problem or "the patch is applied"))

    async def close(self) -> None:
        """Does nothing."""


def _apply(episode: Episode, patch: str) -> str:
    """Applies a patch to the tree; returns why it cannot be applied, or ""."""
    with episode.access() as context:
        run = context.sandbox.run
        context.sandbox.write_file(_PATCH, patch.encode("utf-8", "surrogateescape"))
        results = []
        for command in _COMMANDS:
            results.append(run(command))
            if results[-1].ok:
                run(f"rm -f {_PATCH}")
                return ""
        run(_RESET)
        return f"the patch does not apply: {results[0].output.strip()[-500:]}"


def read_predictions(path: str | Path) -> tuple[dict[str, list[str]], str]:
    """Reads a predictions file in SWE-bench's form.

    That is JSONL, a JSON list, or a JSON object by ``instance_id``, of objects with
    ``instance_id``, ``model_patch`` (null counts as empty) and ``model_name_or_path``. Several
    objects of one id are attempts, in their order.

    Returns:
        The patches of each task, and the model's name ("" where rows name none or several).

    Raises:
        InvalidArgumentError: The file cannot be read; the message names row and field.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as problem:
        raise InvalidArgumentError(f"cannot read {path}: {problem.strerror}") from None
    patches: dict[str, list[str]] = {}
    models = set()
    for number, row in enumerate(_rows(path, text), 1):
        where = f"{path} row {number}"
        if not isinstance(row, dict):
            raise InvalidArgumentError(f"{where} must be an object, got {row!r:.80}")
        for name in ("instance_id", "model_patch"):
            if name not in row:
                raise InvalidArgumentError(f"{where} has no field {name!r}")
        task_id, patch = row["instance_id"], row["model_patch"] or ""
        if not isinstance(task_id, str) or not isinstance(patch, str):
            raise InvalidArgumentError(f"{where}: instance_id and model_patch must be texts")
        patches.setdefault(task_id, []).append(patch)
        models.add(str(row.get("model_name_or_path", "")))
    if not patches:
        raise InvalidArgumentError(f"{path} has no predictions")
    return patches, models.pop() if len(models) == 1 else ""


def _rows(path: Path, text: str) -> list[Any]:
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if isinstance(data, list):
        return data
    if isinstance(data, dict) and "model_patch" not in data:
        return [{"instance_id": key, **row} for key, row in data.items() if isinstance(row, dict)]
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as problem:
                raise InvalidArgumentError(f"{path} line {number} is not JSON: {problem}") from None
    return rows


def check_predicted(patches: Patches, task_ids: Sequence[str]) -> None:
    """Checks that every predicted task is there.

    Raises:
        UnknownTaskError: A task is not; the message names the first.
    """
    missing = sorted(patches.keys() - set(task_ids))
    if missing:
        raise UnknownTaskError(
            f"{len(missing)} predicted tasks are not among the tasks, such as {missing[0]!r}; "
            "name their source with --tasks"
        )
