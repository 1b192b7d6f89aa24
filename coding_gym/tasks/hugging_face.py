"""Datasets of the Hugging Face hub; the one door to the ``datasets`` package."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from coding_gym.errors import MissingDependencyError, UnknownTaskError
from coding_gym.optional import requirement

# The default split for evaluation.
_USUAL_SPLIT = "test"
_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_NOT_IDS = (".jsonl", ".json", ".parquet", ".csv", ".toml")


def is_dataset_id(name: str) -> bool:
    """Returns whether a text has the form ``owner/name`` and not that of a file."""
    return _ID.fullmatch(name) is not None and not name.lower().endswith(_NOT_IDS)


def read_dataset(
    dataset_id: str, splits: Sequence[str] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields (where, row) for the rows of a dataset; each has its split.

    What was downloaded once is found in the cache of ``datasets``. Without a network that package
    tries for about 20 s before it gives up; ``HF_HUB_OFFLINE=1`` in its environment
    makes it give up at once.

    Args:
        dataset_id: ``owner/name``.
        splits: Which splits, in this order; by default ``test``, or the only one that there is.

    Raises:
        UnknownTaskError: There is no such dataset or split, or it cannot be reached.
        MissingDependencyError: ``datasets`` is not installed.
    """
    for split in splits or _default_splits(dataset_id):
        for number, row in enumerate(_load(dataset_id, split), 1):
            named = row if row.get("split") else {**row, "split": split}
            yield f"{dataset_id}:{split} row {number}", named


def _default_splits(dataset_id: str) -> Sequence[str]:
    names = _call("get_dataset_split_names", dataset_id, dataset_id)
    if _USUAL_SPLIT in names:
        return (_USUAL_SPLIT,)
    if len(names) == 1:
        return tuple(names)
    raise UnknownTaskError(
        f"dataset {dataset_id!r} has no split {_USUAL_SPLIT!r}; choose one of {', '.join(names)}, "
        f"such as {dataset_id}:{names[0]}"
    )


def _load(dataset_id: str, split: str) -> Any:
    return _call("load_dataset", f"{dataset_id}:{split}", dataset_id, split=split)


def _call(function: str, wanted: str, *args: Any, **kwargs: Any) -> Any:
    try:
        import datasets
    except ImportError:
        raise MissingDependencyError(
            f"dataset {wanted!r} is of the Hugging Face hub, which needs datasets; run: "
            f"pip install {requirement('datasets')}"
        ) from None
    try:
        return getattr(datasets, function)(*args, **kwargs)
    # Not reached, not found and not readable are OSError, an unknown split is ValueError.
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UnknownTaskError(
            f"cannot load dataset {wanted!r} from the Hugging Face hub: {lines[0]}; a file or "
            "folder of its rows can be given instead"
        ) from error
