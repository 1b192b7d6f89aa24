from receipt import total


def test_adds_up():
    assert total([250, 120, 99]) == 469


def test_nothing_costs_nothing():
    assert total([]) == 0
