"""Saying what of a row is not used: once, as thousands of rows often have the same."""

import logging
from collections.abc import Sequence

_logged: set[tuple[str, ...]] = set()
_MAX_LISTED = 5

FROM_INSTALL = "left out of the install commands, which run without root and conda"


def log_once(log: logging.Logger, what: str, where: str, left_out: Sequence[str]) -> None:
    """Logs a warning, where nothing was said about the same lines before.

    Args:
        log: The logger.
        what: What is done about them.
        where: Names the first row that has them.
        left_out: The commands or lines that are not used.
    """
    if (what, *left_out) in _logged:
        return
    _logged.add((what, *left_out))
    listed = ", ".join(map(repr, left_out[:_MAX_LISTED]))
    more = f" and {len(left_out) - _MAX_LISTED} more" if len(left_out) > _MAX_LISTED else ""
    log.warning("%s: %s: %s%s", where, what, listed, more)
