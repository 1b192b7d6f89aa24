"""Repairs that are honest, and unusual enough to be taken for cheats: their values."""

from gold import Gold

ODD_VALUES = {
    "equality that gives arrays": Gold(
        """\
class Array:
    def __init__(self, *values):
        self.values = values

    def __eq__(self, other):
        others = other.values if isinstance(other, Array) else [other] * len(self.values)
        return Array(*(one == two for one, two in zip(self.values, others)))

    def __bool__(self):
        if len(self.values) > 1:
            raise ValueError("the truth value of an array is ambiguous")
        return bool(self.values[0])

    def all(self):
        return all(self.values)


def double(array):
    return Array(*(2 * value for value in array.values))
""",
        "2 * value",
        "2 + value",
        """\
from source import Array, double


def test_many():
    assert (double(Array(1, 5)) == Array(2, 10)).all()


def test_one():
    assert double(Array(4)) == Array(8)


def test_a_number():
    assert double(Array(7)) == 14
""",
        ("test_many", "test_one", "test_a_number"),
    ),
    "equality with a tolerance": Gold(
        """\
class Length:
    def __init__(self, metres):
        self.metres = metres

    def __eq__(self, other):
        return abs(self.metres - getattr(other, "metres", other)) < 0.01

    __hash__ = None


def feet(number):
    return Length(number * 0.3048)
""",
        "0.3048",
        "0.3",
        """\
import pytest

from source import Length, feet


def test_many_feet():
    assert feet(100) == Length(30.48)


def test_as_a_number():
    assert feet(1000) == 304.8


def test_approximately():
    assert feet(250).metres == pytest.approx(76.2)
""",
        ("test_many_feet", "test_as_a_number", "test_approximately"),
    ),
    "equality that forgives case": Gold(
        """\
class Header(str):
    def __eq__(self, other):
        return self.lower() == other.lower()

    __hash__ = str.__hash__


def name(line):
    return Header(line.partition(":")[0])
""",
        "partition",
        "rpartition",
        """\
from source import name


def test_it_ends_at_the_first_colon():
    assert name("Host: a:80") == "host"


def test_it_is_in_a_list():
    assert name("X-One: b:c") in ["accept", "x-one"]
""",
        ("test_it_ends_at_the_first_colon", "test_it_is_in_a_list"),
    ),
    "asserts in helpers only": Gold(
        "def area(a, b):\n    return a * b\n",
        "a * b",
        "a + b",
        """\
from source import area


def check(a, b, wanted):
    assert area(a, b) == wanted


def test_square():
    check(3, 3, 9)


def test_wide():
    for a, b, wanted in [(1, 5, 5), (2, 7, 14)]:
        check(a, b, wanted)
""",
        ("test_square", "test_wide"),
    ),
    "unittest with set-up and sub-tests": Gold(
        "def shout(text):\n    return text.upper() + '!'\n",
        "upper",
        "lower",
        """\
import unittest

from source import shout


class ShoutTest(unittest.TestCase):
    def setUp(self):
        self.texts = {"a": "A!", "b": "B!"}
        self.addCleanup(self.texts.clear)

    def test_all(self):
        for text, wanted in self.texts.items():
            with self.subTest(text=text):
                self.assertEqual(shout(text), wanted)

    def test_only_once(self):
        self.assertTrue(shout("x").startswith("X"))
        self.assertRaises(AttributeError, shout, 3)

    def test_message(self):
        self.assertEqual(shout("y"), "Y!", "not loud enough")
""",
        ("ShoutTest::test_all", "ShoutTest::test_only_once", "ShoutTest::test_message"),
    ),
    "equality that builds a term of a query": Gold(
        """\
class Column:
    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return ("=", self.name, other)

    def __ne__(self, other):
        return ("<>", self.name, other)

    __hash__ = None


def column(name):
    return Column(name.strip().lower())
""",
        "name.strip().lower()",
        "name.strip()",
        """\
from source import Column, column


def test_is_lower():
    found = column("ID")
    assert found.name == "id"
    assert found == Column("id")


def test_is_stripped():
    found = column(" Name ")
    assert found.name == "name"
    assert found == Column("name")


def test_names():
    assert [column(name).name for name in ("A", " b")] == ["a", "b"]


def test_is_short():
    assert column("X").name == "x"
""",
        ("test_is_lower", "test_is_stripped", "test_names", "test_is_short"),
    ),
}
