"""Converts rows of datasets to one schema; each module reads one format.

A module has ``reads(row)``, which recognises a row by its keys and values and must not raise, and
``to_row(row, position)``, which converts it to the schema of `coding_gym.tasks.task_row.TaskRow`. A
row of `nemo_gym` contains a row of another format. Add a new format to the list below.
"""

from collections.abc import Callable

from coding_gym.tasks.sources import areno, nemo_gym, swe_bench, swe_rebench, swe_smith
from coding_gym.tasks.task_row import Row

_FORMATS: tuple[tuple[Callable[[Row], bool], Callable[[Row, str], Row]], ...] = (
    (areno.reads, areno.to_row),  # tried in this order; the first match is used
    (swe_smith.reads, swe_smith.to_row),
    (swe_rebench.reads, swe_rebench.to_row),
    (lambda _: True, swe_bench.to_row),
)


def unified_row(row: Row, position: str) -> Row:
    """Returns a row in the schema of `coding_gym.tasks.task_row.TaskRow`.

    Args:
        row: A row in any known schema.
        position: Names the row in errors.

    Raises:
        InvalidTaskError: A field is missing or malformed; the message names row, field and value.
    """
    if nemo_gym.reads(row):
        row = nemo_gym.inner_row(row, position)
    to_row = next(to_row for reads, to_row in _FORMATS if reads(row))
    return to_row(row, position)
