"""All formats of rows, by name.

`load_tasks` uses the first format that recognises a row; ``NAME:SOURCE`` selects one. To add a
format, write a module here with one constant, a `RowFormat`, and add it to the list below.
"""

from coding_gym.task_row import Row
from coding_gym.tasks.sources.areno import ARENO
from coding_gym.tasks.sources.nemo_gym import NEMO_GYM
from coding_gym.tasks.sources.row_format import RowFormat
from coding_gym.tasks.sources.swe_bench import SWE_BENCH
from coding_gym.tasks.sources.swe_gym import SWE_GYM
from coding_gym.tasks.sources.swe_rebench import SWE_REBENCH
from coding_gym.tasks.sources.swe_smith import SWE_SMITH

# In the order of recognition; the last one reads every row.
_ROW_FORMATS = (NEMO_GYM, ARENO, SWE_SMITH, SWE_REBENCH, SWE_GYM, SWE_BENCH)
ROW_FORMATS = {row_format.name: row_format for row_format in _ROW_FORMATS}


def unified_row(row: Row, where: str, row_format: RowFormat | None = None) -> Row:
    """Returns a row in the schema of `coding_gym.task_row.TaskRow`.

    Args:
        row: A row in any known schema.
        where: Names the row in errors.
        row_format: Its format; recognised from the row by default.

    Raises:
        InvalidTaskError: A field is missing or malformed; names row, field and value.
    """
    chosen = row_format or next(row_format for row_format in _ROW_FORMATS if row_format.reads(row))
    unified = chosen.to_row(row, where)
    return unified_row(unified, where) if chosen.is_wrapper else unified


__all__ = ["ROW_FORMATS", "Row", "RowFormat", "unified_row"]
