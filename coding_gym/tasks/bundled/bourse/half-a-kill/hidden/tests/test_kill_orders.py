import pytest

from bourse import Book, Kind, Side

BUY, SELL, KILL = Side.BUY, Side.SELL, Kind.KILL


@pytest.fixture
def book():
    book = Book()
    book.submit("ann", SELL, 1005, 100, peak=20)
    book.submit("ben", SELL, 1005, 50)
    book.submit("cat", SELL, 1010, 70)
    book.submit("dan", BUY, 990, 60, peak=25)
    book.submit("eve", BUY, 980, 40)
    return book


def traded(trades):
    return sum(trade.quantity for trade in trades)


def state(book):
    names = [name for name in ("ann", "ben", "cat", "dan", "eve") if name in book]
    return {name: book.open_quantity(name) for name in names}


FULL = {"ann": 100, "ben": 50, "cat": 70, "dan": 60, "eve": 40}


@pytest.mark.parametrize(
    ("side", "price", "quantity"),
    [(BUY, 1004, 10), (BUY, 1005, 140), (SELL, 985, 65), (SELL, 991, 1)],
)
def test_what_is_seen_within_the_limit_is_enough_or_nothing_happens(book, side, price, quantity):
    expected = quantity if (side, price, quantity) == (BUY, 1005, 140) else 0
    assert traded(book.submit("fay", side, price, quantity, kind=KILL)) == expected
    assert sum(state(book).values()) == sum(FULL.values()) - expected


@pytest.mark.parametrize(
    ("side", "price", "quantity"), [(BUY, 1005, 151), (BUY, 1009, 160), (SELL, 981, 61)]
)
def test_dearer_orders_do_not_help(book, side, price, quantity):
    book.submit("gus", SELL, 1011, 500)
    book.submit("hal", BUY, 970, 500)
    assert book.submit("fay", side, price, quantity, kind=KILL) == []
    assert state(book) == FULL


@pytest.mark.parametrize(
    ("side", "price", "quantity"),
    [(BUY, 1005, 150), (BUY, 1010, 220), (BUY, 1005, 141), (SELL, 990, 60), (SELL, 980, 100)],
)
def test_reserves_count(book, side, price, quantity):
    trades = book.submit("fay", side, price, quantity, kind=KILL)
    assert traded(trades) == quantity
    assert "fay" not in book
    assert sum(state(book).values()) == sum(FULL.values()) - quantity


def test_one_more_than_there_is_kills(book):
    assert book.submit("fay", BUY, 1010, 221, kind=KILL) == []
    assert book.submit("fay", SELL, 980, 101, kind=KILL) == []
    assert state(book) == FULL


def test_an_empty_book_kills():
    assert Book().submit("fay", BUY, 1000, 1, kind=KILL) == []


def test_other_kinds_still_take_what_they_get(book):
    assert traded(book.submit("fay", BUY, 1005, 200, kind=Kind.IMMEDIATE)) == 150
    assert traded(book.submit("gus", BUY, 1010, 90)) == 70
    assert book.open_quantity("gus") == 20
