"""Named values in one binary file."""

from crate.compacting import compact
from crate.errors import CorruptError, CrateError, ValueTypeError
from crate.reader import Reader, load
from crate.writer import Writer, append, create

__all__ = [
    "CorruptError",
    "CrateError",
    "Reader",
    "ValueTypeError",
    "Writer",
    "append",
    "compact",
    "create",
    "load",
]
