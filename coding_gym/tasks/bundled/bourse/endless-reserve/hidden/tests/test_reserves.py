from bourse import Book, Side

BUY, SELL = Side.BUY, Side.SELL


def parts(trades):
    return [(trade.maker, trade.quantity) for trade in trades]


def queue(*orders):
    book = Book()
    for name, quantity, peak in orders:
        book.submit(name, SELL, 1000, quantity, peak=peak)
    return book


def test_no_more_is_traded_than_there_was():
    book = queue(("ann", 100, 30))
    assert parts(book.submit("eve", BUY, 1000, 500)) == [("ann", n) for n in (30, 30, 30, 10)]
    assert book.depth(BUY) == [(1000, 400)]
    assert book.depth(SELL) == []


def test_the_last_part_is_shown_as_large_as_it_is():
    book = queue(("ann", 70, 30))
    book.submit("eve", BUY, 1000, 60)
    assert (book.depth(SELL), book.open_quantity("ann")) == ([(1000, 10)], 10)


def test_the_next_part_queues_up_at_the_end():
    book = queue(("ann", 60, 20), ("ben", 30, None), ("cat", 10, None))
    trades = book.submit("eve", BUY, 1000, 90)
    assert parts(trades) == [("ann", 20), ("ben", 30), ("cat", 10), ("ann", 20), ("ann", 10)]


def test_reserves_take_turns():
    book = queue(("ann", 30, 10), ("ben", 25, 10))
    assert parts(book.submit("eve", BUY, 1000, 55)) == [
        ("ann", 10),
        ("ben", 10),
        ("ann", 10),
        ("ben", 10),
        ("ann", 10),
        ("ben", 5),
    ]


def test_the_place_is_lost_between_orders_as_well():
    book = queue(("ann", 40, 20), ("ben", 20, None))
    book.submit("eve", BUY, 1000, 20)
    assert parts(book.submit("fay", BUY, 1000, 25)) == [("ben", 20), ("ann", 5)]


def test_a_part_that_is_not_used_up_keeps_its_place():
    book = queue(("ann", 40, 20), ("ben", 20, None))
    book.submit("eve", BUY, 1000, 15)
    assert parts(book.submit("fay", BUY, 1000, 10)) == [("ann", 5), ("ben", 5)]


def test_an_order_that_trades_before_it_waits_shows_its_peak_at_most():
    book = queue(("ann", 90, None))
    for quantity, shown in ((100, 10), (115, 25), (190, 25)):
        book = queue(("ann", 90, None))
        book.submit("eve", BUY, 1000, quantity, peak=25)
        assert book.depth(BUY) == [(1000, shown)]
        assert book.open_quantity("eve") == quantity - 90


def test_a_peak_above_the_quantity_hides_nothing():
    book = queue(("ann", 20, 50), ("ben", 20, None))
    assert book.depth(SELL) == [(1000, 40)]
    assert parts(book.submit("eve", BUY, 1000, 30)) == [("ann", 20), ("ben", 10)]


def test_buyers_have_reserves_as_well():
    book = Book()
    book.submit("ann", BUY, 1000, 25, peak=10)
    book.submit("ben", BUY, 1000, 10)
    assert parts(book.submit("eve", SELL, 990, 40)) == [
        ("ann", 10),
        ("ben", 10),
        ("ann", 10),
        ("ann", 5),
    ]
    assert book.depth(SELL) == [(990, 5)]
