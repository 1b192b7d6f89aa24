"""An order book that matches buyers and sellers."""

from bourse.book import Book
from bourse.candles import Candle, candles
from bourse.errors import BourseError, JournalError, OrderError
from bourse.journal import replay
from bourse.model import Kind, Side, Trade
from bourse.prices import format_price, parse_price

__all__ = [
    "Book",
    "BourseError",
    "Candle",
    "JournalError",
    "Kind",
    "OrderError",
    "Side",
    "Trade",
    "candles",
    "format_price",
    "parse_price",
    "replay",
]
