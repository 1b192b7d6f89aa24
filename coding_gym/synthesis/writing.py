"""Tasks as rows of a file, beside the trees that they are made from."""

import json
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from coding_gym.errors import InvalidArgumentError
from coding_gym.task import FolderTree, Task


class Output:
    """Where tasks will lie: a JSONL file, and its trees in a folder beside it.

    Nothing is made before there is something to keep. As a context manager it removes on the way
    out what was made since, folders around the file among it, unless `write` came to its end.

    Attributes:
        file: The JSONL file.
        staging: Where trees belong until `write` moves them to their place.

    Args:
        file: The JSONL file.
        replace: Whether a file that is there already may be replaced, at the end and as a whole.

    Raises:
        InvalidArgumentError: The file is there already, or cannot be written.
    """

    def __init__(self, file: Path, *, replace: bool = False) -> None:
        _check_place(file, replace)
        self.file = file
        self.staging = file.with_name(f".{file.stem}-trees.{os.getpid()}")
        self._trees = file.with_name(f"{file.stem}-trees")
        around = (self._trees, *file.parents)
        self._made = [folder for folder in around if not folder.exists()]
        self._moved: list[Path] = []
        self._is_written = False

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Removes what nobody asked for; everything, if nothing was written."""
        shutil.rmtree(self.staging, ignore_errors=True)
        if self._is_written:
            return
        for tree in self._moved:
            shutil.rmtree(tree, ignore_errors=True)
        for folder in self._made:
            with suppress(OSError):  # it was never made, or holds what somebody else wrote
                folder.rmdir()

    def write(self, tasks: Iterable[Task]) -> None:
        """Moves the trees to their place and writes the file."""
        placed = [self._placed(task) for task in tasks]
        for tree in sorted(self.staging.iterdir()) if self.staging.is_dir() else ():
            place = self._trees / tree.name
            if not place.exists():
                self._trees.mkdir(parents=True, exist_ok=True)
                self._moved.append(place)
                tree.rename(place)
        write_rows(placed, self.file)
        self._is_written = True

    def _placed(self, task: Task) -> Task:
        if not isinstance(task.tree, FolderTree):
            return task
        folder = Path(task.tree.folder)
        if folder.parent.resolve() != self.staging.resolve():
            return task
        return replace(task, tree=replace(task.tree, folder=str(self._trees / folder.name)))


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
    try:
        partial.write_text("".join(lines), encoding="utf-8")
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)


def _check_place(file: Path, replace: bool) -> None:
    if file.is_dir():
        raise InvalidArgumentError(f"--out must be a file, got the folder {file}")
    if file.exists() and not replace:
        raise InvalidArgumentError(
            f"{file} is there already; give another --out, or --force to replace it"
        )
    around = next(folder for folder in file.absolute().parents if folder.exists())
    if not around.is_dir():
        raise InvalidArgumentError(f"cannot write to {file}: {around} is not a folder")
    if not os.access(around, os.W_OK | os.X_OK):
        raise InvalidArgumentError(f"cannot write to {file}: {around} cannot be written to")


def _relative(task: Task, base: Path) -> Task:
    if not isinstance(task.tree, FolderTree):
        return task
    folder = os.path.relpath(Path(task.tree.folder).resolve(), base)
    return replace(task, tree=replace(task.tree, folder=folder))
