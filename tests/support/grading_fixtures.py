"""Helpers for tests of grading: example tasks, and functions that grade patches of them."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sandbox_fixtures import write_files

from coding_gym.grade import Grade
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.synthesis import Project
from coding_gym.synthesis.suite import Suite
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import TemplateStore

Changes = Mapping[str, str | None]
GradeTree = Callable[..., Grade]
SuiteOf = Callable[[Path | Mapping[str, str]], Suite]

needs_junit = pytest.mark.skipif(
    not (shutil.which("javac") and Path("/usr/share/java/junit4.jar").exists()),
    reason="needs a JDK and JUnit 4 (apt-get install default-jdk-headless junit4)",
)


def made_task(
    task_id: str,
    base: Mapping[str, str],
    fixed: Mapping[str, str],
    hidden: Mapping[str, str],
    **fields: Any,
) -> Task:
    """Returns a task whose gold patch writes ``fixed``, and whose test patch adds ``hidden``."""
    return Task(
        task_id=task_id,
        tree=FilesTree(base),
        problem_statement="Something is wrong",
        gold_patch=Patch.between({path: base[path] for path in fixed}, fixed).text,
        test_patch=Patch.between({}, hidden).text,
        created_at="2024-02-03T04:05:06Z",
        **fields,
    )


# The bug: a discount raises the total. The hidden tests have all forms of pytest and unittest.
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
    """Returns `TASK` with other hidden tests; ``broken`` names the fail-to-pass tests."""
    path = "tests/test_hidden.py"
    return replace(
        TASK,
        test_patch=Patch.between({}, {path: tests}).text,
        fail_to_pass=tuple(f"{path}::{name}" for name in broken),
        pass_to_pass=(),
    )


def patch_of(changes: Changes, base: Mapping[str, str] = BASE) -> Patch:
    """Returns the patch of ``changes``: new contents by path; None deletes the file."""
    after = {path: text for path, text in {**base, **changes}.items() if text is not None}
    return Patch.between(base, after)


def graded(task: Task, store: TemplateStore, changes: Changes) -> Grade:
    """Grades changes to the base of a task with inline files, and returns the grade."""
    assert isinstance(task.tree, FilesTree)
    return grade(task, store.get(task), patch_of(changes, task.tree.files))


def graded_gold(task: Task, store: TemplateStore) -> Grade:
    """Grades the gold patch of a task and returns the grade."""
    return grade(task, store.get(task), Patch(task.gold_patch))


@pytest.fixture(scope="session")
def store() -> TemplateStore:
    """The template store in the cache of the test run."""
    return TemplateStore()


@pytest.fixture(scope="module")
def suite_of(store: TemplateStore, tmp_path_factory: pytest.TempPathFactory) -> SuiteOf:
    """A function that returns the test suite of a folder, or of files by path."""

    def suite(program: Path | Mapping[str, str]) -> Suite:
        if not isinstance(program, Path):
            program = write_files(tmp_path_factory.mktemp("program"), program)
        task = Project(name="program", folder=program).task()
        return Suite(task, store.get(task), "auto")

    return suite


@pytest.fixture
def grade_tree(store: TemplateStore) -> GradeTree:
    """A function that grades changes to the base of `TASK`, with the options of `grade`."""

    def run(changes: Changes, **options: Any) -> Grade:
        return grade(TASK, store.get(TASK), patch_of(changes), **options)

    return run
