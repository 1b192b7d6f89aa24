"""Values of amounts in another commodity."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from ledgerline.amounts import Amount
from ledgerline.model import Price


class Valuation:
    """Values amounts in one commodity, at the last price of each that is known.

    Args:
        commodity: in which amounts are valued.
        prices: those that are known, in the order of the file.
        end: prices from this day on are not known yet; None if there is no such day.
    """

    def __init__(self, commodity: str, prices: Iterable[Price], end: dt.date | None = None) -> None:
        known = [p for p in prices if p.price.commodity == commodity and (not end or p.date < end)]
        self._commodity = commodity
        self._prices = {p.commodity: p.price for p in sorted(known, key=lambda p: p.date)}

    def value(self, amount: Amount) -> Amount:
        """The value of ``amount``; the amount itself if it has no price."""
        price = self._prices.get(amount.commodity)
        if price is None or amount.commodity == self._commodity:
            return amount
        return amount.at(price)
