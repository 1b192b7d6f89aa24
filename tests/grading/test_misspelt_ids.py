"""An expected test that never ran may only be spelt wrongly."""

from dataclasses import replace

import pytest
from cart_task import TASK

from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.workspace import TemplateStore

MISSPELT = {
    "tests/test_cart.py::test_counts": "(missing; did you mean test_count?)",
    "tests/test_cart.py::test_x": "(missing)",
    "tests/test_discounts.py::Test::test_no_prizes": "(missing; did you mean test_no_prices?)",
    "tests/test_discounts.py::test_count_is_not_discounted": (
        "(missing; did you mean DiscountTest::test_count_is_not_discounted?)"
    ),
    "tests/test_gone.py::test_count": "(missing)",
}


@pytest.mark.parametrize("names", [list(MISSPELT)[:3], list(MISSPELT)[3:]], ids=["near", "far"])
def test_a_misspelt_test_is_told_which_one_may_be_meant(
    store: TemplateStore, names: list[str]
) -> None:
    task = replace(TASK, pass_to_pass=tuple(names))
    verdict = grade(task, store.get(task), Patch(task.gold_patch), is_gold=True)
    said = ", ".join(f"{name} {MISSPELT[name]}" for name in names)
    assert verdict.detail == f"{len(names)} of {4 + len(names)} expected tests did not pass: {said}"


def test_a_test_that_is_expected_anyway_is_not_what_was_meant(store: TemplateStore) -> None:
    task = replace(TASK, pass_to_pass=(*TASK.pass_to_pass, "tests/test_cart.py::test_counts"))
    verdict = grade(task, store.get(task), Patch(task.gold_patch), is_gold=True)
    assert verdict.detail.endswith("tests/test_cart.py::test_counts (missing)")
