"""Tasks that are rows of a dataset: in files, in folders of such, or given as they are."""

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coding_gym.errors import InvalidTaskError, MissingDependencyError, PatchError
from coding_gym.optional import requirement
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.tasks.host_paths import with_paths
from coding_gym.tasks.sources import RowFormat, unified_row

Row = tuple[str, Any]  # where it stands, and what stands there

# How the hub names the files of a split: "train.jsonl", "test-00000-of-00003.parquet".
_SPLIT_FILE = re.compile(r"(train|test|dev|validation)(?:-\d+-of-\d+)?")


def read_rows(rows: Sequence[Any]) -> Iterator[tuple[str, Task]]:
    """Yields (where, task) for rows given as mappings, or as tasks that were loaded before.

    Raises:
        InvalidTaskError: A row is malformed; names the row, the field and the value.
    """
    yield from read_placed(((f"row {n}", row) for n, row in enumerate(rows, 1)), base=Path.cwd())


def row_files(folder: Path) -> tuple[Path, ...]:
    """Returns the files of rows in a folder and one folder deeper, in order of paths."""
    found = (
        path
        for pattern in ("*.jsonl", "*.parquet", "*/*.jsonl", "*/*.parquet")
        for path in folder.glob(pattern)
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    return tuple(sorted(found))


def read_file(path: Path, row_format: RowFormat | None = None) -> Iterator[tuple[str, Task]]:
    """Yields (where, task) for every row of a ``.jsonl``, ``.json`` or ``.parquet`` file.

    Relative paths in rows (``folder``, ``repository``) start at the file's folder. A file named as
    the splits of datasets are gives its rows that split, unless they say another.

    Args:
        path: The file.
        row_format: The format of all its rows; told from each row by default.

    Raises:
        InvalidTaskError: The file cannot be read, or a row is malformed; names file, line, field
            and value.
        MissingDependencyError: The file is Parquet and pyarrow is not installed.
    """
    readers = {".jsonl": read_jsonl, ".json": read_json, ".parquet": _read_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InvalidTaskError(f"{path}: task files end in {', '.join(readers)}")
    rows = reader(path)
    if match := _SPLIT_FILE.fullmatch(path.stem):
        rows = ((where, _with_split(row, match[1])) for where, row in rows)
    yield from read_placed(rows, base=path.parent, row_format=row_format)


def read_jsonl(path: Path) -> Iterator[Row]:
    """Yields (where, value) for every line of ``path`` that is not blank."""
    # Not splitlines: JSON texts may hold U+2028 and other line ends as they are.
    for number, line in enumerate(_read_text(path).split("\n"), 1):
        if line.strip():
            yield f"{path} line {number}", _parse_json(line, f"{path} line {number}")


def read_json(path: Path) -> Iterator[Row]:
    """Yields (where, value) for every item of the list in ``path``, or once for another value."""
    value = _parse_json(_read_text(path), str(path))
    if isinstance(value, list):
        yield from ((f"{path} item {n}", row) for n, row in enumerate(value, 1))
    else:
        yield str(path), value


def _read_parquet(path: Path) -> Iterator[Row]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError(
            f"reading {path.name} needs pyarrow; run: pip install {requirement('datasets')}"
        ) from None
    try:
        rows = pyarrow.parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidTaskError(f"{path}: not Parquet: {str(error).splitlines()[0]}") from None
    yield from ((f"{path} row {n}", row) for n, row in enumerate(rows, 1))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidTaskError(f"{path}: not UTF-8: {error}") from None
    except OSError as error:
        raise InvalidTaskError(f"{path}: cannot be read: {error.strerror}") from None


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidTaskError(f"{where}: not JSON: {error}") from None


def _with_split(row: Any, split: str) -> Any:
    is_silent = isinstance(row, Mapping) and not row.get("split")
    return {**row, "split": split} if is_silent else row


def read_placed(
    rows: Iterable[Row], *, base: Path | None, row_format: RowFormat | None = None
) -> Iterator[tuple[str, Task]]:
    """Yields (where, task) for rows and where they stand.

    Args:
        rows: What was read.
        base: Where relative paths in rows start; None for rows that somebody else wrote and nobody
            here has seen, which may name nothing of this machine.
        row_format: The format of all rows; told from each row by default.

    Raises:
        InvalidTaskError: A row is malformed; names the row, the field and the value.
    """
    for where, row in rows:
        if isinstance(row, Task):
            yield where, row
            continue
        if not isinstance(row, Mapping):
            excerpt = repr(row)[:80]
            raise InvalidTaskError(
                f"{where}: must be an object with a task's fields, got {excerpt}"
            )
        plain = {key: _plain(value) for key, value in row.items()}
        task = Task.from_row(unified_row(plain, where, row_format), where=where)
        _check_patch(task, "patch", task.gold_patch, where)
        _check_patch(task, "test_patch", task.test_patch, where)
        yield where, with_paths(task, base, f"{where} ({task.task_id})")


def _plain(value: Any) -> Any:
    """Returns a date as text, as JSON would have it; column stores keep dates as dates."""
    return value.isoformat() if isinstance(value, datetime.date) else value


def _check_patch(task: Task, field: str, text: str, where: str) -> None:
    try:
        Patch(text).files  # noqa: B018 - reading it is the check
    except PatchError as error:
        raise InvalidTaskError(f"{where} ({task.task_id}): field {field!r}: {error}") from None
