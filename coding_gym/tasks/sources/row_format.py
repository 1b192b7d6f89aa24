"""A format of rows: the schema of one family of datasets."""

from collections.abc import Callable
from dataclasses import dataclass

from coding_gym.task_row import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """The schema in which one family of datasets writes a task.

    Attributes:
        name: The name before the colon of a source, in lower case with dashes.
        reads: Recognises a row of this format by its keys and values; it must not raise.
        to_row: Converts a row at a position to the schema of `coding_gym.task_row.TaskRow`. It
            raises an InvalidTaskError for a malformed field if `TaskRow` has another name for it.
        is_wrapper: Whether the result of ``to_row`` is a row of another format.
    """

    name: str
    reads: Callable[[Row], bool]
    to_row: Callable[[Row, str], Row]
    is_wrapper: bool = False
