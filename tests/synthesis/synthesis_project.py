"""Writes a small project to break; its tests cover most of it, and some are unreliable."""

from pathlib import Path

from sandbox_fixtures import write_files

TILL = '''\
"""Adds up what customers owe."""


def total(prices, discount=0, limit=100):
    """The sum of all prices, less a discount in percent."""
    if not prices:
        return 0
    result = sum(prices)
    if discount > limit:
        raise ValueError("too much of a discount")
    # Rounded down: the shop keeps no cents.
    result = result - result * discount // 100
    return result


def largest(prices):
    best = prices[0]
    for price in prices[1:]:
        if price > best:
            best = price
    return best


def never_tested(value):
    return value + 1
'''
TEST_TILL = """\
import random
import unittest

import pytest

from shop.till import largest, total


def test_nothing_costs_nothing():
    assert total([]) == 0


def test_sum():
    assert total([1, 2, 3]) == 6


# A comment about discounts.
@pytest.mark.parametrize(("discount", "expected"), [(10, 90), (50, 50), (100, 0)])
def test_discount(discount, expected):
    prices = [60, 40]
    assert total(prices, discount) == expected


def test_discount_too_large():
    with pytest.raises(ValueError):
        total([5], 101)


class LargestTest(unittest.TestCase):
    def test_middle(self):
        self.assertEqual(largest([1, 9, 3]), 9)

    def test_last(self):
        self.assertEqual(largest([1, 2]), 2)


def test_chance():
    assert random.random() < 0.5


def test_wrong_from_the_start():
    assert total([1]) == 2
"""


def write_project(folder: Path) -> Path:
    """Writes the project and returns its folder."""
    files = {
        "shop/__init__.py": "",
        "shop/till.py": TILL,
        "tests/test_till.py": TEST_TILL,
    }
    return write_files(folder, files)
