import pytest

from bourse import Book, Kind, OrderError, Side, Trade

BUY, SELL = Side.BUY, Side.SELL


@pytest.fixture
def book():
    book = Book()
    book.submit("ann", SELL, 1005, 100)
    book.submit("ben", SELL, 1005, 50)
    book.submit("cat", SELL, 1010, 70)
    return book


def test_better_prices_come_first(book):
    book.submit("dan", SELL, 1000, 10)
    assert book.submit("eve", BUY, 1005, 20) == [
        Trade("dan", "eve", 1000, 10, 0),
        Trade("ann", "eve", 1005, 10, 0),
    ]


def test_at_one_price_earlier_orders_come_first(book):
    trades = book.submit("eve", BUY, 1005, 120)
    assert [(t.maker, t.quantity) for t in trades] == [("ann", 100), ("ben", 20)]
    assert book.depth(SELL) == [(1005, 30), (1010, 70)]


def test_the_rest_waits(book):
    book.submit("eve", BUY, 1005, 200)
    assert book.depth(BUY) == [(1005, 50)]
    assert book.depth(SELL) == [(1010, 70)]
    assert book.open_quantity("eve") == 50


def test_sellers_meet_the_highest_buyer_first():
    book = Book()
    book.submit("ann", BUY, 990, 10)
    book.submit("ben", BUY, 995, 10)
    trades = book.submit("eve", SELL, 980, 15)
    assert [(t.maker, t.price, t.quantity) for t in trades] == [("ben", 995, 10), ("ann", 990, 5)]


def test_best_prices(book):
    assert (book.best(SELL), book.best(BUY)) == (1005, None)


def test_immediate_orders_do_not_wait(book):
    assert len(book.submit("eve", BUY, 1005, 200, kind=Kind.IMMEDIATE)) == 2
    assert "eve" not in book
    assert book.depth(BUY) == []


def test_kill_orders_trade_in_full_or_not_at_all(book):
    assert book.submit("eve", BUY, 1010, 221, kind=Kind.KILL) == []
    assert book.depth(SELL) == [(1005, 150), (1010, 70)]
    assert len(book.submit("eve", BUY, 1010, 220, kind=Kind.KILL)) == 3
    assert book.depth(SELL) == []


def test_cancelling(book):
    assert book.cancel("ann") == 100
    assert book.depth(SELL) == [(1005, 50), (1010, 70)]
    with pytest.raises(OrderError, match="no order ann"):
        book.cancel("ann")


def test_amending_moves_an_order(book):
    assert book.amend("ann", price=1020, quantity=30) == []
    assert book.depth(SELL) == [(1005, 50), (1010, 70), (1020, 30)]


def test_a_higher_quantity_goes_to_the_end(book):
    book.amend("ann", quantity=110)
    assert [t.maker for t in book.submit("eve", BUY, 1005, 60)] == ["ben", "ann"]


def test_a_peak_hides_the_reserve():
    book = Book()
    book.submit("ann", SELL, 1000, 100, peak=30)
    assert book.depth(SELL) == [(1000, 30)]
    book.submit("eve", BUY, 1000, 30)
    assert book.depth(SELL) == [(1000, 30)]
    assert book.open_quantity("ann") == 70


@pytest.mark.parametrize(
    ("price", "quantity", "peak"), [(0, 1, None), (1, 0, None), (1, 1, 0)], ids=["p", "q", "peak"]
)
def test_impossible_orders_are_refused(book, price, quantity, peak):
    with pytest.raises(OrderError, match="at least 1"):
        book.submit("eve", BUY, price, quantity, peak=peak)
    assert "eve" not in book


def test_names_are_taken_once(book):
    with pytest.raises(OrderError, match="already"):
        book.submit("ann", BUY, 1, 1)
