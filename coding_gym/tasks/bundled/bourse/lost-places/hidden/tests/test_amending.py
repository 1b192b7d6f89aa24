import pytest

from bourse import Book, OrderError, Side, Trade, replay

BUY, SELL = Side.BUY, Side.SELL


@pytest.fixture
def book():
    book = Book()
    book.submit("ann", SELL, 1005, 100)
    book.submit("ben", SELL, 1005, 50)
    book.submit("dan", BUY, 990, 40)
    return book


def parts(trades):
    return [(trade.maker, trade.quantity) for trade in trades]


@pytest.mark.parametrize("quantity", [1, 30, 99, 100])
def test_a_lower_quantity_keeps_the_place(book, quantity):
    assert book.amend("ann", quantity=quantity) == []
    assert book.depth(SELL) == [(1005, quantity + 50)]
    assert parts(book.submit("eve", BUY, 1005, quantity + 5)) == [("ann", quantity), ("ben", 5)]


def test_the_same_price_again_keeps_the_place(book):
    book.amend("ann", price=1005, quantity=60)
    assert parts(book.submit("eve", BUY, 1005, 70)) == [("ann", 60), ("ben", 10)]


def test_a_higher_quantity_or_another_price_loses_it(book):
    book.amend("ann", quantity=101)
    assert parts(book.submit("eve", BUY, 1005, 60)) == [("ben", 50), ("ann", 10)]
    book.submit("fay", SELL, 1005, 10)
    book.amend("ann", price=1006)
    book.amend("ann", price=1005)
    assert parts(book.submit("gus", BUY, 1005, 20)) == [("fay", 10), ("ann", 10)]


def test_a_price_that_somebody_accepts_trades_at_once(book):
    book.now = 77
    assert book.amend("ann", price=985) == [Trade("dan", "ann", 990, 40, 77)]
    assert (book.depth(SELL), book.depth(BUY)) == ([(985, 60), (1005, 50)], [])


def test_a_buyer_who_raises_the_price_trades_with_all_who_accept(book):
    trades = book.amend("dan", price=1010, quantity=170)
    assert parts(trades) == [("ann", 100), ("ben", 50)]
    assert (book.depth(SELL), book.depth(BUY)) == ([], [(1010, 20)])


def test_an_order_may_be_used_up_by_being_amended(book):
    assert parts(book.amend("dan", price=1005)) == [("ann", 40)]
    assert "dan" not in book
    with pytest.raises(OrderError, match="no order dan"):
        book.amend("dan", quantity=1)
    assert (book.depth(SELL), book.depth(BUY)) == ([(1005, 110)], [])


def test_a_journal_gets_the_trades(book):
    lines = ["10:00:00 amend ann 30 10.05", "10:00:01 amend dan 35 10.05"]
    assert parts(replay(lines, book)) == [("ann", 30), ("ben", 5)]


@pytest.mark.parametrize(
    ("quantity", "shown", "then"),
    [(60, 20, [("ann", 20), ("ben", 5)]), (12, 12, [("ann", 12), ("ben", 13)])],
)
def test_the_reserve_goes_first(quantity, shown, then):
    book = Book()
    book.submit("ann", SELL, 1000, 100, peak=30)
    book.submit("ben", SELL, 1000, 50)
    book.submit("eve", BUY, 1000, 10)
    book.amend("ann", quantity=quantity)
    assert book.depth(SELL) == [(1000, shown + 50)]
    assert book.open_quantity("ann") == quantity
    assert parts(book.submit("fay", BUY, 1000, 25)) == then


def test_an_impossible_change_changes_nothing(book):
    for change in ({"quantity": -1}, {"price": -5}):
        with pytest.raises(OrderError, match="at least 1"):
            book.amend("ann", **change)
    assert parts(book.submit("eve", BUY, 1005, 110)) == [("ann", 100), ("ben", 10)]
