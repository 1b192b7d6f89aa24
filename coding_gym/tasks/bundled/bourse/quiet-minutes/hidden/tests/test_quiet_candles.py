from bourse import Candle, Trade, candles


def trades(*pairs):
    return [Trade("a", "b", price, 10, at) for at, price in pairs]


def quiet(at, price):
    return Candle(at, price, price, price, price, 0)


def single(at, price):
    return Candle(at, price, price, price, price, 10)


def test_quiet_candles_repeat_the_close():
    found = candles(trades((0, 100), (10, 104), (200, 90)), 60, 0, 240)
    first = Candle(0, 100, 104, 100, 104, 20)
    assert found == [first, quiet(60, 104), quiet(120, 104), single(180, 90)]


def test_quiet_candles_go_on_to_the_end():
    assert candles(trades((5, 100)), 10, 0, 40) == [
        single(0, 100),
        quiet(10, 100),
        quiet(20, 100),
        quiet(30, 100),
    ]


def test_the_first_candle_is_that_of_the_first_trade():
    assert candles(trades((25, 80)), 10, 0, 40) == [single(20, 80), quiet(30, 80)]


def test_candles_are_counted_from_the_start():
    found = candles(trades((95, 100), (154, 101), (155, 102)), 60, 95, 215)
    assert found == [Candle(95, 100, 101, 100, 101, 20), single(155, 102)]


def test_the_end_is_outside():
    assert candles(trades((59, 70), (60, 99)), 30, 0, 60) == [single(30, 70)]
    assert candles(trades((60, 99)), 30, 0, 60) == []


def test_trades_before_the_start_do_not_count():
    assert candles(trades((9, 50), (30, 60)), 10, 10, 40) == [single(30, 60)]


def test_the_last_candle_may_be_cut_short():
    found = candles(trades((1, 10), (24, 12), (25, 99)), 10, 0, 25)
    assert found == [single(0, 10), quiet(10, 10), single(20, 12)]


def test_nothing_traded_is_nothing_shown():
    assert candles([], 60, 0, 600) == []
