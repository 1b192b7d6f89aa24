"""A small project to break, with tests of nearly everything; some tests are unreliable."""

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
NAMES = """\
class Register:
    def __init__(self, names=()):
        self.names = list(names)

    def add(self, name):
        clean = name.strip().lower()
        if clean in self.names:
            raise KeyError(clean)
        self.names.append(clean)
        return clean

    def first(self, count):
        return self.names[:count]
"""
TEST_TILL = """\
import random

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


def test_largest():
    assert largest([1, 9, 3]) == 9


def test_largest_is_last():
    assert largest([1, 2]) == 2


def test_chance():
    assert random.random() < 0.5


def test_wrong_from_the_start():
    assert total([1]) == 2
"""
TEST_NAMES = """\
import unittest

from shop.names import Register


class RegisterTest(unittest.TestCase):
    Register = Register

    def test_add(self):
        register = self.Register()
        self.assertEqual(register.add(" Ada "), "ada")

    def test_twice(self):
        register = Register(["ada"])
        with self.assertRaises(KeyError):
            register.add("Ada")

    def test_first(self):
        self.assertEqual(Register(["a", "b", "c"]).first(2), ["a", "b"])

    def test_own_list(self):
        names = ["a"]
        Register(names).add("b")
        self.assertEqual(names, ["a"])
"""


def write_project(folder: Path) -> Path:
    """Writes the project and returns its folder."""
    files = {
        "shop/__init__.py": "",
        "shop/till.py": TILL,
        "shop/names.py": NAMES,
        "tests/test_till.py": TEST_TILL,
        "tests/test_names.py": TEST_NAMES,
    }
    return write_files(folder, files)
