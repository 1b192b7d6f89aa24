"""A format of rows: how one family of datasets writes a task."""

from collections.abc import Callable
from dataclasses import dataclass

from coding_gym.task_row import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """The way in which one family of datasets writes a task as a row.

    Attributes:
        name: What people write before the colon of a source, in lower case with dashes.
        reads: Whether a row is of this format, by its keys and the form of its values. It must not
            fail, whatever the values are.
        to_row: Takes a row and its position, and returns the same task in the schema of
            `coding_gym.task_row.TaskRow`. Raises InvalidTaskError that names the dataset's own
            field for what `TaskRow` would not see, or would see under another name.
        is_wrapper: Whether what ``to_row`` returns is a row of some other format.
    """

    name: str
    reads: Callable[[Row], bool]
    to_row: Callable[[Row, str], Row]
    is_wrapper: bool = False
