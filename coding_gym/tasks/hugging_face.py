"""Reads datasets of the Hugging Face hub; the only module that imports ``datasets``."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from coding_gym.errors import UnknownTaskError
from coding_gym.optional import import_extra

# A name with one of these suffixes is a file name, even if the file does not exist.
_FILE_SUFFIXES = (".jsonl", ".json", ".parquet", ".csv", ".toml")
_DEFAULT_SPLIT = "test"
_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def is_dataset_id(name: str) -> bool:
    """Returns whether a text has the form ``owner/name`` and no suffix of a task file."""
    return _ID.fullmatch(name) is not None and not name.lower().endswith(_FILE_SUFFIXES)


def read_dataset(
    dataset_id: str, splits: Sequence[str] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the position and the content of every row of a dataset; each row names its split.

    ``datasets`` caches the downloads. Without a network connection, it retries for about 20 s; the
    environment variable ``HF_HUB_OFFLINE=1`` disables the retries.

    Args:
        dataset_id: ``owner/name``.
        splits: Names of splits, in the order of the rows; by default ``test``, or the only split.

    Raises:
        UnknownTaskError: The dataset or split does not exist, or cannot be reached.
        MissingDependencyError: ``datasets`` is not installed.
    """
    for split in splits or _default_splits(dataset_id):
        with _library(f"{dataset_id}:{split}") as datasets:
            rows = list(datasets.load_dataset(dataset_id, split=split))
        for number, row in enumerate(rows, 1):
            labelled_row = row if row.get("split") else {**row, "split": split}
            yield f"{dataset_id}:{split} row {number}", labelled_row


def _default_splits(dataset_id: str) -> Sequence[str]:
    with _library(dataset_id) as datasets:
        names = datasets.get_dataset_split_names(dataset_id)
    if _DEFAULT_SPLIT in names:
        return (_DEFAULT_SPLIT,)
    if len(names) == 1:
        return tuple(names)
    raise UnknownTaskError(
        f"dataset {dataset_id!r} has no split {_DEFAULT_SPLIT!r}; name one of {', '.join(names)}, "
        f"such as {dataset_id}:{names[0]}"
    )


@contextmanager
def _library(dataset: str) -> Iterator[Any]:
    """Yields the module ``datasets``; converts its errors to UnknownTaskError."""
    datasets = import_extra("datasets", "datasets")
    try:
        yield datasets
    # Unreachable, missing and unreadable datasets raise OSError, an unknown split ValueError.
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UnknownTaskError(
            f"cannot load dataset {dataset!r} from the Hugging Face hub: {lines[0]}; remedy: "
            "download its rows and name their file or folder"
        ) from error
