"""Tasks as rows of a file, beside the trees that they are made from."""

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from coding_gym.task import FolderTree, Task


def write_rows(tasks: Iterable[Task], out: Path) -> None:
    """Writes tasks to a JSONL file that `coding_gym.tasks.load_tasks` reads.

    Folders are named relative to the file, so that it can move together with them.

    Args:
        tasks: The tasks.
        out: The file; it is there as a whole or not at all.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.{os.getpid()}")
    lines = [json.dumps(_relative(task, out.parent.resolve()).to_row()) + "\n" for task in tasks]
    partial.write_text("".join(lines), encoding="utf-8")
    partial.replace(out)


def _relative(task: Task, base: Path) -> Task:
    if not isinstance(task.tree, FolderTree):
        return task
    folder = os.path.relpath(Path(task.tree.folder).resolve(), base)
    return replace(task, tree=replace(task.tree, folder=folder))
