from receipt import total


def test_half_a_cent_is_rounded_up():
    assert total([199, 99], discount_percent=25) == 224
    assert total([1], discount_percent=50) == 1


def test_more_than_half_a_cent_is_rounded_up():
    assert total([333, 333], discount_percent=5) == 633
    assert total([11], discount_percent=1) == 11


def test_less_than_half_a_cent_is_rounded_down():
    assert total([333, 334], discount_percent=10) == 600
    assert total([7, 8, 4], discount_percent=20) == 15
