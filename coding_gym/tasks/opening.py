"""Reads a source of tasks: a name, a path or a list of rows."""

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from coding_gym.arguments import hint
from coding_gym.errors import InvalidArgumentError, InvalidTaskError, PatchError, UnknownTaskError
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.task_row import row_label
from coding_gym.tasks.bundled_tasks import BUNDLED, POLYGLOT, read_bundled, read_polyglot
from coding_gym.tasks.filters import RefusedRow, Wanted
from coding_gym.tasks.folder import MANIFEST, read_folder, read_task_folder
from coding_gym.tasks.harbor import harbor_rows, is_checkout
from coding_gym.tasks.host_paths import with_paths
from coding_gym.tasks.hugging_face import is_dataset_id, read_dataset
from coding_gym.tasks.rows import Row, file_rows, row_files
from coding_gym.tasks.sources import unified_row

_Rows = tuple[Iterable[Row], Path | None]
"""Rows, and the folder of their relative paths; None forbids local paths, for rows of the hub."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The content of a source.

    Attributes:
        tasks: All its tasks and refused rows, in the order of the source.
        locations: The position of each task in the source, by id.
        usable: Ids of the tasks that passed `check_usable`.
    """

    tasks: tuple[Task | RefusedRow, ...]
    locations: Mapping[str, str] = field(default_factory=dict)
    usable: set[str] = field(default_factory=set)


def open_shared(source: str | Path | Sequence[Any], split: Wanted = None) -> Opened:
    """Returns the result of `open_source`; unchanged sources are read once per process.

    Every env of a vector env opens its source.
    """
    if isinstance(split, Iterable) and not isinstance(split, str):
        split = tuple(map(str, split))  # hashable
    top = Path.cwd()  # where relative paths in rows start
    files: Iterable[Path] = ()
    if isinstance(source, str | Path):
        top = Path(source).expanduser().absolute()
        files = top.rglob("*") if top.is_dir() else (top,)
    try:
        pickled = pickle.dumps(source)
        stats = {path: path.stat() for path in files if path.is_file()}
    except (OSError, AttributeError, TypeError, pickle.PicklingError):
        return open_source(source, split)  # it reads the source, or raises a clear error
    if top.name == MANIFEST or top / MANIFEST in stats:
        return open_source(source, split)  # the tree of one task is often in another folder
    states = tuple((path, s.st_ino, s.st_size, s.st_mtime_ns) for path, s in stats.items())
    return _open_once(pickled, split, top, states)


@lru_cache(maxsize=8)
def _open_once(source: bytes, split: Wanted, *state: object) -> Opened:
    del state  # a part of the key: the absolute path, and the state of its files
    return open_source(pickle.loads(source), split)  # noqa: S301 - our own bytes


def open_source(source: str | Path | Sequence[Any], split: Wanted = None) -> Opened:
    """Reads all tasks of a source.

    A malformed row or folder, or a repeated id, becomes a `RefusedRow`.

    Args:
        source: The source; see `load_tasks`.
        split: The splits to download, for datasets of the Hugging Face hub.

    Raises:
        UnknownTaskError: There is no such source.
        InvalidTaskError: The source has no tasks, or a file cannot be read.
        InvalidArgumentError: The source is neither a name nor a path nor a list.
        MissingDependencyError: The source needs a package that is not installed.
    """
    if source == BUNDLED:
        return Opened(read_bundled())
    if source == POLYGLOT:
        return Opened(read_polyglot())
    if isinstance(source, list | tuple):
        rows = ((f"row {n}", row) for n, row in enumerate(source, 1))
        return _read([(rows, Path.cwd())], "the list of rows")
    if not isinstance(source, str | Path):
        raise InvalidArgumentError(
            f"tasks must be a source's name, a path or a list of rows, got {type(source).__name__}"
        )
    return _read(_rows(source, split), str(source))


def _rows(source: str | Path, split: Wanted) -> Sequence[_Rows]:
    """Returns the rows of a source, by the folder of their relative paths."""
    path = Path(source).expanduser()
    if path.is_dir():
        return _folder_rows(path)
    if path.name == MANIFEST and path.is_file():
        return [([(str(path), read_task_folder(path.parent))], path.parent)]
    if path.is_file():
        return [(file_rows(path), path.parent)]
    dataset, _, own_split = str(source).partition(":")
    # A name below an existing folder is a mistyped path, not a dataset.
    is_dataset = is_dataset_id(dataset) and not Path(dataset).parent.is_dir()
    if isinstance(source, str) and is_dataset:
        splits = (own_split,) if own_split else (split,) if isinstance(split, str) else split
        return [(read_dataset(dataset, splits), None)]
    raise UnknownTaskError(
        f"there is no task source {str(source)!r}: no folder of tasks, no .jsonl, .json or "
        ".parquet file, and no dataset of the Hugging Face hub as owner/name; "
        + hint(source, (BUNDLED, POLYGLOT))
    )


def _folder_rows(path: Path) -> Sequence[_Rows]:
    if is_checkout(path):
        return [(harbor_rows(path), path)]
    has_tasks = any(any(path.glob(f"{above}{MANIFEST}")) for above in ("", "*/", "*/*/"))
    files = () if has_tasks else row_files(path)
    return [(file_rows(file), file.parent) for file in files] or [(read_folder(path), path)]


def _read(rows_by_folder: Sequence[_Rows], source: str) -> Opened:
    """Reads rows to tasks, and malformed rows to `RefusedRow`."""
    locations: dict[str, str] = {}
    tasks: list[Task | RefusedRow] = []
    for where, row, base in ((*row, base) for rows, base in rows_by_folder for row in rows):
        try:
            task = _task(row, where, base)
            if task.task_id in locations:
                raise InvalidTaskError(
                    f"{where}: field 'instance_id' must be unique, but {task.task_id!r} is already "
                    f"in {locations[task.task_id]}"
                )
        except InvalidTaskError as error:
            tasks.append(RefusedRow.of(row, error))
            continue
        locations[task.task_id] = where
        tasks.append(task)
    if not tasks:
        raise InvalidTaskError(f"{source} contains no tasks")
    return Opened(tuple(tasks), locations)


def _task(row: Any, where: str, base: Path | None) -> Task:
    if isinstance(row, InvalidTaskError):
        raise row
    if isinstance(row, Task):
        return row
    if not isinstance(row, Mapping):
        raise InvalidTaskError(
            f"{where}: must be an object with a task's fields, got {repr(row)[:80]}"
        )
    task = Task.from_row(unified_row(row, where), where=where)
    label = row_label({"instance_id": task.task_id}, where)
    for name, text in (("patch", task.gold_patch), ("test_patch", task.test_patch)):
        try:
            Patch(text).files  # noqa: B018 - reading it is the check
        except PatchError as error:
            raise InvalidTaskError(f"{label}: field {name!r}: {error}") from None
    return with_paths(task, base, label)
