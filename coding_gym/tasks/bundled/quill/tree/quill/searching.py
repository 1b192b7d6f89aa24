"""Finding texts in a text."""

from __future__ import annotations

import re

Span = tuple[int, int]
"""Start and end."""


def find_all(text: str, wanted: str, *, ignore_case: bool, whole_words: bool) -> list[Span]:
    """Where something is in a text, from front to back and without overlaps.

    Args:
        text: where to look.
        wanted: what to look for.
        ignore_case: whether case does not count.
        whole_words: whether it must not be a part of a longer word.

    Raises:
        ValueError: if it is empty.
    """
    if not wanted:
        raise ValueError("cannot look for an empty text")
    pattern = re.escape(wanted)
    if whole_words:
        pattern = rf"(?<!\w){pattern}(?!\w)"
    matches = re.finditer(pattern, text, re.IGNORECASE if ignore_case else 0)
    return [match.span() for match in matches]
