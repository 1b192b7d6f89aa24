"""Opening a source of tasks: what a name, a path or a list stands for, and what reads it."""

import difflib
import hashlib
import os
import pickle
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, UnknownTaskError
from coding_gym.task import FolderTree, Task
from coding_gym.tasks.bundled_tasks import read_bundled, read_polyglot
from coding_gym.tasks.filters import Wanted
from coding_gym.tasks.folder import MANIFEST, read_folder, read_task
from coding_gym.tasks.hugging_face import is_dataset_id, read_dataset
from coding_gym.tasks.rows import read_file, read_placed, read_rows, row_files
from coding_gym.tasks.sources import CHECKOUTS, ROW_FORMATS, RowFormat, checkout_of

BUNDLED, POLYGLOT = "bundled", "polyglot"
# A source with one of these suffixes is a file, also where there is none.
_FILES = (".jsonl", ".json", ".parquet", ".csv", ".toml")

Found = Iterable[tuple[str, Task]]


@dataclass(frozen=True, slots=True)
class Opened:
    """A source that was read.

    Attributes:
        tasks: All its tasks, in its order.
        locations: Where each task stands in it, by id.
        usable: Ids of the tasks that were checked and found usable.
    """

    tasks: tuple[Task, ...]
    locations: Mapping[str, str] = field(default_factory=dict)
    usable: set[str] = field(default_factory=set)


_MAX_KEPT = 8
_kept: dict[Hashable, Opened] = {}


def open_shared(source: str | Path | Sequence[Any], split: Wanted = None) -> Opened:
    """Returns what `open_source` returns; it reads a source once per process.

    A source is read again when one of its files has changed. The last few sources are kept.
    """
    try:
        key = _fingerprint(source, split)
    except (OSError, TypeError, ValueError, AttributeError, pickle.PicklingError):
        key = None  # `open_source` says what is wrong with it
    opened = _kept.get(key)
    if opened is None:
        opened = open_source(source, split)
        if key is not None and _is_self_contained(source, opened):
            _kept[key] = opened
            for old in list(_kept)[:-_MAX_KEPT]:
                _kept.pop(old, None)
    return opened


def _fingerprint(source: Any, split: Wanted) -> Hashable:
    """Returns what differs between two sources, or two states of one."""
    if isinstance(source, list | tuple):  # relative paths in rows start at the current folder
        return Path.cwd(), hashlib.sha256(pickle.dumps(source)).digest()
    name, place = _named(source)
    top = _top(place)
    folders = os.walk(top) if top.is_dir() else [(str(top.parent), [], [top.name])]
    paths = (Path(folder, file) for folder, _, files in folders for file in files)
    states = tuple(
        (str(path), state.st_ino, state.st_size, state.st_mtime_ns)
        for path in paths
        if path.is_file() and (state := path.stat())
    )
    return name, str(place), top, repr(split), states


def _top(place: str | Path) -> Path:
    """Returns the file or folder that is read; a task is the folder of its manifest."""
    path = Path(place).expanduser().absolute()
    return path.parent if path.name == MANIFEST and path.is_file() else path


def _is_self_contained(source: Any, opened: Opened) -> bool:
    """Whether the fingerprint covers every file that was read; a task's tree may lie outside."""
    if isinstance(source, list | tuple):
        return True
    top = _top(_named(source)[1]).resolve()
    trees = [task.tree for task in opened.tasks if isinstance(task.tree, FolderTree)]
    return not top.is_dir() or all(Path(tree.folder).is_relative_to(top) for tree in trees)


def open_source(source: str | Path | Sequence[Any], split: Wanted = None) -> Opened:
    """Reads all tasks of a source.

    Args:
        source: As `load_tasks` takes it.
        split: Which splits to download, where the source is a dataset of the Hugging Face hub.

    Raises:
        UnknownTaskError: There is no such source.
        InvalidTaskError: A row or folder is malformed, or two tasks have one id.
        InvalidArgumentError: It is neither a name nor a path nor a list.
        MissingDependencyError: It needs a package that is not installed.
    """
    if source == BUNDLED:
        return Opened(read_bundled())
    if source == POLYGLOT:
        return Opened(read_polyglot())
    if isinstance(source, list | tuple):
        return _unique(read_rows(source), "the list of rows")
    if not isinstance(source, str | Path):
        raise InvalidArgumentError(
            f"tasks must be a source's name, a path or a list of rows, got {type(source).__name__}"
        )
    name, place = _named(source)
    return _unique(_read(name, place, split), str(place))


def _named(source: str | Path) -> tuple[str, str | Path]:
    """Splits ``format:source``; the format is "" where none is named."""
    if isinstance(source, str):
        name, colon, place = source.partition(":")
        if colon and name in CHECKOUTS.keys() | ROW_FORMATS.keys():
            return name, place
    return "", source


def _read(name: str, place: str | Path, split: Wanted) -> Found:
    path = Path(place).expanduser()
    if name in CHECKOUTS:
        if not path.is_dir():
            raise UnknownTaskError(f"no folder {str(place)!r}; {name!r} is read from a folder")
        return CHECKOUTS[name].read(path)
    row_format = ROW_FORMATS.get(name)
    if path.is_dir():
        return _read_folder(path, row_format)
    if path.name == MANIFEST and path.is_file():
        return [(str(path), read_task(path.parent))]
    if path.is_file():
        return read_file(path, row_format)
    dataset, _, own_split = str(place).partition(":")
    if isinstance(place, str) and is_dataset_id(dataset):
        splits = (own_split,) if own_split else (split,) if isinstance(split, str) else split
        return read_placed(read_dataset(dataset, splits), base=None, row_format=row_format)
    raise _unknown(place)


def _read_folder(path: Path, row_format: RowFormat | None) -> Found:
    if row_format is None and (checkout := checkout_of(path)) is not None:
        return checkout.read(path)
    has_tasks = any(any(path.glob(f"{above}{MANIFEST}")) for above in ("", "*/", "*/*/"))
    files = () if has_tasks and row_format is None else row_files(path)
    if not files and row_format is None:
        return read_folder(path)
    return (found for file in files for found in read_file(file, row_format))


def _unknown(place: str | Path) -> UnknownTaskError:
    names = [BUNDLED, POLYGLOT, *(f"{name}:" for name in (*CHECKOUTS, *ROW_FORMATS))]
    prefix, colon, _ = str(place).partition(":")
    path, close = Path(place), difflib.get_close_matches(f"{prefix}{colon}", names, 1, cutoff=0.5)
    is_path = isinstance(place, Path) or "/" in str(place) or path.suffix.lower() in _FILES
    if is_path and not (colon and close):
        kind = "file" if path.suffix else "file or folder"
        said, close = f"there is no {kind} {str(place)!r}; ", []
    else:
        said = f"no task source {str(place)!r}; "
    return UnknownTaskError(
        said
        + (f"did you mean {close[0]!r}? " if close else "")
        + f"give {BUNDLED!r}, {POLYGLOT!r}, a folder of tasks, a .jsonl, .json or .parquet file, "
        "or a dataset of the Hugging Face hub as owner/name"
    )


def _unique(found: Found, source: str) -> Opened:
    locations: dict[str, str] = {}
    tasks = []
    for where, task in found:
        if task.task_id in locations:
            raise InvalidTaskError(
                f"{where}: field 'instance_id' must be unique, but {task.task_id!r} is already in "
                f"{locations[task.task_id]}"
            )
        locations[task.task_id] = where
        tasks.append(task)
    if not tasks:
        raise InvalidTaskError(f"{source} holds no tasks")
    return Opened(tuple(tasks), locations)
