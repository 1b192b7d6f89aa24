"""Writes tasks as rows of a file, with the trees in a folder next to the file."""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from coding_gym.errors import InvalidArgumentError
from coding_gym.synthesis.progress import Progress
from coding_gym.task import FolderTree, Task
from coding_gym.whole_file import write_whole


@contextmanager
def new_rows(out: Path, progress: Progress) -> Iterator[Path]:
    """Yields a temporary folder for trees; at the end, writes the tasks of ``progress``.

    The tasks become a new file of rows, and the folder of their trees moves next to the file. After
    an interrupt or a failure, the file has the tasks that were made before. Without a task, nothing
    is written.

    Args:
        out: The JSONL file.
        progress: The progress of the synthesis that makes the tasks.

    Raises:
        InvalidArgumentError: The file exists already, or cannot be written.
    """
    if out.is_dir():
        raise InvalidArgumentError(f"--out must be a file, got the folder {out}")
    if out.exists():
        raise InvalidArgumentError(f"--out must name a new file, but {out} exists; remove the file")
    parent = next(folder for folder in out.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InvalidArgumentError(f"--out must be in a writable folder, got {out} in {parent}")
    with tempfile.TemporaryDirectory(prefix=f".{out.stem}-", dir=parent) as folder:
        try:
            yield Path(folder)
        finally:
            if progress.tasks:
                _write_staged(progress.tasks, out, Path(folder))


def _write_staged(tasks: Iterable[Task], out: Path, trees: Path) -> None:
    """Moves trees from their temporary folder to ``<name>-trees``; writes the rows to ``out``."""
    folder = out.with_name(f"{out.stem}-trees")
    for tree in trees.iterdir():
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / tree.name).exists():
            tree.rename(folder / tree.name)
    write_rows([_with_moved_tree(task, trees, folder) for task in tasks], out)


def write_rows(tasks: Iterable[Task], out: Path) -> None:
    """Writes tasks to a JSONL file that `coding_gym.tasks.load_tasks` reads.

    Paths of folders are relative to the file, so users can move the file with its folders.

    Args:
        tasks: The tasks.
        out: The file; it is written completely or not at all.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    base = out.parent.resolve()
    rows = [_with_relative_tree(task, base).to_row() for task in tasks]
    write_whole(out, "".join(json.dumps(row) + "\n" for row in rows))


def _with_moved_tree(task: Task, old: Path, new: Path) -> Task:
    if not isinstance(task.tree, FolderTree) or Path(task.tree.folder).parent != old:
        return task
    return replace(task, tree=replace(task.tree, folder=str(new / Path(task.tree.folder).name)))


def _with_relative_tree(task: Task, base: Path) -> Task:
    if not isinstance(task.tree, FolderTree):
        return task
    folder = os.path.relpath(Path(task.tree.folder).resolve(), base)
    return replace(task, tree=replace(task.tree, folder=folder))
