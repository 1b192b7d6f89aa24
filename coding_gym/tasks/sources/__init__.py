"""Every kind of thing that tasks are read from, by name.

`load_tasks` asks each checkout whether it reads a folder, and each row format whether it reads a
row; the first that does is taken. ``NAME:SOURCE`` names it outright. To add one, write a module
here with one constant, a `RowFormat` or a `Checkout` of `coding_gym.tasks.sources.kinds`, and name
it below. A module here imports at its top only what importing ``coding_gym`` may import.
"""

from pathlib import Path

from coding_gym.tasks.sources.areno import ARENO
from coding_gym.tasks.sources.harbor import HARBOR
from coding_gym.tasks.sources.kinds import Checkout, Row, RowFormat
from coding_gym.tasks.sources.nemo_gym import NEMO_GYM
from coding_gym.tasks.sources.swe_bench import SWE_BENCH
from coding_gym.tasks.sources.swe_gym import SWE_GYM
from coding_gym.tasks.sources.swe_rebench import SWE_REBENCH
from coding_gym.tasks.sources.swe_smith import SWE_SMITH

# In the order in which they are asked.
_CHECKOUTS: tuple[Checkout, ...] = (HARBOR,)
_ROW_FORMATS: tuple[RowFormat, ...] = (
    NEMO_GYM,
    ARENO,
    SWE_SMITH,
    SWE_REBENCH,
    SWE_GYM,
    SWE_BENCH,  # reads whatever is left
)

CHECKOUTS = {checkout.name: checkout for checkout in _CHECKOUTS}
ROW_FORMATS = {row_format.name: row_format for row_format in _ROW_FORMATS}


def checkout_of(folder: Path) -> Checkout | None:
    """Returns what reads ``folder``; None where it is a folder of ``task.toml`` tasks."""
    return next((checkout for checkout in _CHECKOUTS if checkout.reads(folder)), None)


def unified_row(row: Row, where: str, row_format: RowFormat | None = None) -> Row:
    """Returns a row in the schema of `coding_gym.task.Task.from_row`.

    Args:
        row: A row in any known schema.
        where: Names it in errors.
        row_format: Its format; told from the row where it is not given.

    Raises:
        InvalidTaskError: A field is missing or is not what it must be; names row, field and value.
    """
    found = row_format or next(one for one in _ROW_FORMATS if one.reads(row))
    unified = found.to_row(row, where)
    return unified_row(unified, where) if found.is_wrapper else unified


__all__ = ["CHECKOUTS", "ROW_FORMATS", "Checkout", "Row", "RowFormat", "checkout_of", "unified_row"]
