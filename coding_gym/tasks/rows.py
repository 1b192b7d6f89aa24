"""Reads the rows of a dataset from files: JSON lines, JSON, Parquet."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coding_gym.errors import InvalidTaskError
from coding_gym.optional import import_extra

LocatedRow = tuple[str, Any]
"""The position of a row, for error messages, and its value."""

# Names of the files of a split on the hub: "train.jsonl", "test-00000-of-00003.parquet".
_SPLIT_FILE = re.compile(r"(train|test|dev|validation)(?:-\d+-of-\d+)?")


def read_text(path: Path, errors: str = "strict") -> str:
    """Returns the text of a file in UTF-8, with its line endings and byte order mark.

    Args:
        path: The file.
        errors: The treatment of bytes that are not UTF-8, as in `bytes.decode`.

    Raises:
        InvalidTaskError: The file cannot be read, or is not UTF-8 and ``errors`` is ``strict``.
    """
    try:
        return path.read_bytes().decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise InvalidTaskError(f"{path}: must be UTF-8: {error}") from None
    except OSError as error:
        raise InvalidTaskError(f"{path}: cannot be read: {error.strerror}") from None


def row_files(folder: Path) -> tuple[Path, ...]:
    """Returns the files of rows in a folder and its direct subfolders, in order of paths."""
    paths = (
        path
        for pattern in ("*.jsonl", "*.parquet", "*/*.jsonl", "*/*.parquet")
        for path in folder.glob(pattern)
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    return tuple(sorted(paths))


def file_rows(path: Path) -> Iterator[LocatedRow]:
    """Yields the position and the value of each row of a ``.jsonl``, ``.json`` or Parquet file.

    For a line that is not JSON, the row is an InvalidTaskError, and reading continues. If the file
    is named after a split, rows without a split get this split.

    Raises:
        InvalidTaskError: The file cannot be read.
        MissingDependencyError: The file is Parquet and pyarrow is not installed.
    """
    readers = {".jsonl": _jsonl, ".json": read_json, ".parquet": _read_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InvalidTaskError(f"{path}: the name of a task file must end in {', '.join(readers)}")
    match = _SPLIT_FILE.fullmatch(path.stem)
    for position, row in reader(path):
        yield position, _with_split(row, match[1]) if match else row


def read_jsonl(path: Path) -> Iterator[LocatedRow]:
    """Yields the position and the value of every line of ``path`` that is not blank.

    Raises:
        InvalidTaskError: The file cannot be read, or a line is not JSON.
    """
    for position, value in _jsonl(path):
        if isinstance(value, InvalidTaskError):
            raise value
        yield position, value


def _jsonl(path: Path) -> Iterator[LocatedRow]:
    # `splitlines` would also split at U+2028, which JSON texts can contain.
    for number, line in enumerate(read_text(path).removeprefix("\ufeff").split("\n"), 1):
        if line.strip():
            position = f"{path} line {number}"
            try:
                yield position, _parse_json(line, position)
            except InvalidTaskError as error:
                yield position, error


def read_json(path: Path) -> Iterator[LocatedRow]:
    """Yields position and value of each item of the list in a file, or of the file's only value."""
    value = _parse_json(read_text(path).removeprefix("\ufeff"), str(path))
    if isinstance(value, list):
        yield from ((f"{path} item {n}", row) for n, row in enumerate(value, 1))
    else:
        yield str(path), value


def _read_parquet(path: Path) -> Iterator[LocatedRow]:
    pyarrow = import_extra("pyarrow", "datasets")
    parquet = import_extra("pyarrow.parquet", "datasets")
    try:
        rows = parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidTaskError(f"{path}: must be Parquet: {str(error).splitlines()[0]}") from None
    yield from ((f"{path} row {n}", row) for n, row in enumerate(rows, 1))


def _parse_json(text: str, position: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidTaskError(f"{position}: must be JSON: {error}") from None


def _with_split(row: Any, split: str) -> Any:
    lacks_split = isinstance(row, Mapping) and not row.get("split")
    return {**row, "split": split} if lacks_split else row
