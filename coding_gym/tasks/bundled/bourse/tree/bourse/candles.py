"""Trades, summed up over spans of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bourse.errors import BourseError
from bourse.model import Trade


@dataclass(frozen=True)
class Candle:
    """The trades of one span: prices in cents, and the quantity that changed hands."""

    start: int
    open: int
    high: int
    low: int
    close: int
    volume: int


def candles(trades: Iterable[Trade], width: int, start: int, end: int) -> list[Candle]:
    """The candles of a period.

    Args:
        trades: in the order in which they happened; the ones outside the period do not count.
        width: seconds of one candle.
        start: the first second of the period.
        end: the second after the period.

    Raises:
        BourseError: if the width is not positive.
    """
    if width < 1:
        raise BourseError(f"the width of a candle must be at least 1, got {width}")
    spans: dict[int, list[Trade]] = {at: [] for at in range(start, end, width)}
    for trade in trades:
        if start <= trade.at < end:
            spans[trade.at - (trade.at - start) % width].append(trade)
    found: list[Candle] = []
    for at, inside in spans.items():
        if inside:
            found.append(_candle(at, inside))
        elif found:
            close = found[-1].close
            found.append(Candle(at, close, close, close, close, 0))
    return found


def _candle(start: int, trades: list[Trade]) -> Candle:
    prices = [trade.price for trade in trades]
    volume = sum(trade.quantity for trade in trades)
    return Candle(start, prices[0], max(prices), min(prices), prices[-1], volume)
