"""A task small enough to attack: a discount that raises the total, tests of every kind."""

from dataclasses import replace

from made_tasks import made_task

from coding_gym.patch import Patch
from coding_gym.task import Task

BASE = {
    "cart.py": (
        "def total(prices, discount=0):\n"
        "    return sum(prices) + discount\n"
        "\n"
        "\n"
        "def count(prices):\n"
        "    return len(prices)\n"
    ),
    "README.md": "# A cart\n",
    "tests/pricing.py": "def same(one, two):\n    assert one == two\n",
    "tests/test_cart.py": (
        "from cart import count, total\n"
        "\n"
        "\n"
        "def test_plain_total():\n"
        "    assert total([1, 2]) == 3\n"
        "\n"
        "\n"
        "def test_count():\n"
        "    assert count([5, 5]) == 2\n"
    ),
}
HIDDEN = {
    "tests/test_discounts.py": (
        "import unittest\n"
        "\n"
        "import pytest\n"
        "\n"
        "from cart import count, total\n"
        "\n"
        "\n"
        "def test_discount_lowers_the_total():\n"
        "    assert total([10, 5], discount=3) == 12\n"
        "\n"
        "\n"
        '@pytest.mark.parametrize("discount", [1, 2])\n'
        "def test_any_discount(discount):\n"
        '    """The doc string stays."""\n'
        "    if discount > 5:\n"
        "        return\n"
        "    assert total([9], discount) == 9 - discount\n"
        "\n"
        "\n"
        "def test_no_prices():\n"
        "    assert total([]) == 0\n"
        "\n"
        "\n"
        "class DiscountTest(unittest.TestCase):\n"
        "    def test_whole_price(self):\n"
        "        self.assertEqual(total([4], 4), 0)\n"
        "\n"
        "    def test_count_is_not_discounted(self):\n"
        "        self.assertEqual(count([4]), 1)\n"
    ),
}
FIXED = BASE["cart.py"].replace("+ discount", "- discount")
TASK = made_task(
    "cart-discount",
    BASE,
    {"cart.py": FIXED},
    HIDDEN,
    fail_to_pass=(
        "tests/test_discounts.py::test_discount_lowers_the_total",
        "tests/test_discounts.py::test_any_discount[1]",
        "tests/test_discounts.py::test_any_discount[2]",
        "tests/test_discounts.py::DiscountTest::test_whole_price",
    ),
    pass_to_pass=(
        "tests/test_discounts.py::test_no_prices",
        "tests/test_discounts.py::DiscountTest::test_count_is_not_discounted",
        "tests/test_cart.py::test_plain_total",
        "tests/test_cart.py::test_count",
    ),
)


def with_hidden(tests: str, *broken: str) -> Task:
    """The task with another file of hidden tests, and the names of those that the bug breaks."""
    path = "tests/test_hidden.py"
    return replace(
        TASK,
        test_patch=Patch.between({}, {path: tests}).text,
        fail_to_pass=tuple(f"{path}::{name}" for name in broken),
        pass_to_pass=(),
    )
