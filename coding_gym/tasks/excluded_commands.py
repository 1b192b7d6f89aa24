"""Warns of install commands that are not used: once, as thousands of rows often have the same."""

import logging
from collections.abc import Sequence

# The field of a unified row that holds them.
EXCLUDED = "excluded_commands"

_log = logging.getLogger(__name__)
_logged: set[tuple[str, ...]] = set()
_MAX_LISTED = 5


def log_once(where: str, commands: Sequence[str]) -> None:
    """Logs a warning, unless the same commands were in an earlier one.

    Args:
        where: Names the first row that has them.
        commands: The commands.
    """
    if not commands or tuple(commands) in _logged:
        return
    _logged.add(tuple(commands))
    listed = ", ".join(map(repr, commands[:_MAX_LISTED]))
    more = f" and {len(commands) - _MAX_LISTED} more" if len(commands) > _MAX_LISTED else ""
    _log.warning(
        "%s: excluded from the install commands, which run without root and conda: %s%s",
        where,
        listed,
        more,
    )
