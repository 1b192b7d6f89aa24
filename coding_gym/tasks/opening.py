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
from coding_gym.task import FolderTree, Task
from coding_gym.tasks.bundled_tasks import BUNDLED, POLYGLOT, bundled_folder, bundled_rows
from coding_gym.tasks.filters import RefusedRow, Wanted
from coding_gym.tasks.folder import MANIFEST, manifests, read_folder, read_task_folder
from coding_gym.tasks.harbor import harbor_rows, has_harbor_tasks
from coding_gym.tasks.host_paths import with_paths
from coding_gym.tasks.hugging_face import is_dataset_id, read_dataset
from coding_gym.tasks.rows import LocatedRow, file_rows, row_files
from coding_gym.tasks.sources import unified_row
from coding_gym.tasks.task_row import read_task, row_label

_Rows = tuple[Iterable[LocatedRow], Path | None]
"""Rows, and the base folder of their relative paths; None, for hub rows, forbids local paths."""


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """The tasks of a source.

    Attributes:
        tasks: All tasks and refused rows, in the order of the source.
        locations: The position of each task in the source, by id.
        usable: Ids of the tasks that passed `check_usable`.
    """

    tasks: tuple[Task | RefusedRow, ...]
    locations: Mapping[str, str] = field(default_factory=dict)
    usable: set[str] = field(default_factory=set)


def open_shared(source: str | Path | Sequence[Any], split: Wanted = None) -> OpenedSource:
    """Returns the result of `open_source`; unchanged sources are read once per process.

    All environments of a vector environment open the same source.
    """
    if isinstance(split, Iterable) and not isinstance(split, str):
        split = tuple(map(str, split))  # hashable
    base = Path.cwd()  # the base of relative paths in rows
    files: Iterable[Path] = ()
    if isinstance(source, str | Path):
        base = Path(source).expanduser().absolute()
        base = base.parent if base.name == MANIFEST else base
        files = base.rglob("*") if base.is_dir() else (base,)
    try:
        source_bytes = pickle.dumps(source)
        stats = {path: path.stat() for path in files if path.is_file()}
    except (OSError, AttributeError, TypeError, pickle.PicklingError):
        return open_source(source, split)  # reads the source, or raises a clear error
    fingerprints = [(path, s.st_ino, s.st_size, s.st_mtime_ns) for path, s in stats.items()]
    content = _open_once(source_bytes, split, base, *fingerprints)
    # Files outside the folder of a source have no fingerprints.
    if stats and base.is_dir() and not all(_is_below(base.resolve(), t) for t in content.tasks):
        return open_source(source, split)
    return content


@lru_cache(maxsize=8)
def _open_once(source: bytes, split: Wanted, *fingerprints: object) -> OpenedSource:
    del fingerprints  # only a part of the cache key
    return open_source(pickle.loads(source), split)  # noqa: S301 - bytes of `open_shared`


def _is_below(folder: Path, task: Task | RefusedRow) -> bool:
    """Returns False for a refused row, and for a task whose tree is a folder outside ``folder``."""
    tree = FolderTree("/") if isinstance(task, RefusedRow) else task.tree
    return not isinstance(tree, FolderTree) or Path(tree.folder).is_relative_to(folder)


def open_source(source: str | Path | Sequence[Any], split: Wanted = None) -> OpenedSource:
    """Reads all tasks of a source.

    A malformed row or folder, or a repeated id, becomes a `RefusedRow`.

    Args:
        source: The source; see `load_tasks`.
        split: The splits to download, for datasets of the Hugging Face hub.

    Raises:
        UnknownTaskError: The source does not exist.
        InvalidTaskError: The source has no tasks, or a file cannot be read.
        InvalidArgumentError: The source is not a name, a path or a list.
        MissingDependencyError: The source needs a package that is not installed.
    """
    if isinstance(source, list | tuple):
        rows = ((f"row {n}", row) for n, row in enumerate(source, 1))
        return _read([(rows, Path.cwd())], "the list of rows")
    if not isinstance(source, str | Path):
        raise InvalidArgumentError(
            f"tasks must be a source's name, a path or a list of rows, got {type(source).__name__}"
        )
    return _read(_rows(source, split), str(source))


def _rows(source: str | Path, split: Wanted) -> Sequence[_Rows]:
    """Returns the rows of a source, grouped by the base folder of their relative paths."""
    if source in (BUNDLED, POLYGLOT):
        return [(bundled_rows(str(source)), bundled_folder())]
    path = Path(source).expanduser()
    if path.is_dir():
        return _folder_rows(path)
    if path.name == MANIFEST and path.is_file():
        return [([(str(path), read_task_folder(path.parent))], path.parent)]
    if path.is_file():
        return [(file_rows(path), path.parent)]
    dataset, _, named_split = str(source).partition(":")
    # A name below an existing folder is a mistyped path, not a dataset.
    is_dataset = is_dataset_id(dataset) and not Path(dataset).parent.is_dir()
    if isinstance(source, str) and is_dataset:
        split = named_split or split
        splits = (split,) if isinstance(split, str) else split
        return [(read_dataset(dataset, splits), None)]
    raise UnknownTaskError(
        f"there is no task source {str(source)!r}: no folder of tasks, no .jsonl, .json or "
        ".parquet file, and no dataset of the Hugging Face hub as owner/name; "
        + hint(source, (BUNDLED, POLYGLOT))
    )


def _folder_rows(path: Path) -> Sequence[_Rows]:
    if has_harbor_tasks(path):
        return [(harbor_rows(path), path)]
    files = () if any(manifests(path)) else row_files(path)
    return [(file_rows(file), file.parent) for file in files] or [(read_folder(path), path)]


def _read(rows_by_folder: Sequence[_Rows], source: str) -> OpenedSource:
    """Converts rows to tasks, and malformed rows to `RefusedRow`."""
    locations: dict[str, str] = {}
    tasks: list[Task | RefusedRow] = []
    entries = ((*row, base) for rows, base in rows_by_folder for row in rows)
    for position, row, base in entries:
        try:
            task = _task(row, position, base)
            if task.task_id in locations:
                raise InvalidTaskError(
                    f"{position}: field 'instance_id' must be unique, but {task.task_id!r} is "
                    f"already in {locations[task.task_id]}"
                )
        except InvalidTaskError as error:
            tasks.append(RefusedRow.of(row, error))
            continue
        locations[task.task_id] = position
        tasks.append(task)
    if not tasks:
        raise InvalidTaskError(f"{source} must contain at least one task, got none")
    return OpenedSource(tuple(tasks), locations)


def _task(row: Any, position: str, base: Path | None) -> Task:
    if isinstance(row, InvalidTaskError):
        raise row
    if isinstance(row, Task):
        return row
    if not isinstance(row, Mapping):
        raise InvalidTaskError(
            f"{position}: must be an object with a task's fields, got {repr(row)[:80]}"
        )
    task = read_task(unified_row(row, position), position)
    label = row_label({"instance_id": task.task_id}, position)
    for name, text in (("patch", task.gold_patch), ("test_patch", task.test_patch)):
        try:
            Patch(text).files  # noqa: B018 - parses the patch
        except PatchError as error:
            raise InvalidTaskError(f"{label}: field {name!r}: {error}") from None
    return with_paths(task, base, label)
