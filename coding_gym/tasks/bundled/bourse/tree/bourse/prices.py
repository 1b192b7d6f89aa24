"""Prices as people write them, and as cents."""

from __future__ import annotations

import re

from bourse.errors import BourseError

_PRICE = re.compile(r"([0-9]+)(?:\.([0-9]{1,2}))?")


def parse_price(text: str) -> int:
    """The cents of a price such as ``10.05``.

    Raises:
        BourseError: if the text is no price.
    """
    match = _PRICE.fullmatch(text)
    if match is None:
        raise BourseError(f"a price looks like 10.05, got {text!r}")
    whole, cents = match.groups(default="")
    return int(whole) * 100 + int(cents.ljust(2, "0"))


def format_price(cents: int) -> str:
    """A price as text, always with two decimals."""
    return f"{cents // 100}.{cents % 100:02}"
