"""What a source of tasks is: rows in some dataset's schema, or a checkout of a benchmark."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coding_gym.task import Task

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """The way in which one family of datasets writes a task as a row.

    Attributes:
        name: What people write before the colon of a source, in lower case with dashes.
        reads: Whether a row is of this format, told from its keys and the form of its values. It
            must not fail, whatever the values are.
        to_row: Takes a row and where it stands, and returns the same task in the schema that
            `Task.from_row` reads. Raises InvalidTaskError that names the dataset's own field for
            what `Task.from_row` would not see, or would see under another name.
        is_wrapper: Whether what ``to_row`` returns is a row of some other format.
    """

    name: str
    reads: Callable[[Row], bool]
    to_row: Callable[[Row, str], Row]
    is_wrapper: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A benchmark whose tasks lie in one folder, in a layout of its own.

    Attributes:
        name: What people write before the colon of a source, in lower case with dashes.
        reads: Whether a folder that exists is one, told from a few paths in it.
        read: Yields (where, task) for every task of the folder, in an order of its own that is
            always the same. ``where`` names file and line, or the task's folder, in errors. Raises
            InvalidTaskError that names file, field and value.
    """

    name: str
    reads: Callable[[Path], bool]
    read: Callable[[Path], Iterator[tuple[str, Task]]]
