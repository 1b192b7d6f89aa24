"""Options of a project's pytest configuration, and a memory limit that ends a run of its tests."""

from dataclasses import replace

import pytest
from grading_fixtures import BASE, TASK, graded_gold, patch_of, with_hidden

from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.task import FilesTree
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "options",
    [
        "-m late -k count --deselect tests/test_discounts.py",
        "-x --lf --collect-only",
    ],
)
def test_options_that_select_tests_are_overridden(store: TemplateStore, options: str) -> None:
    config = {"pytest.ini": f"[pytest]\nmarkers = late\naddopts = {options}\n"}
    verdict = graded_gold(replace(TASK, tree=FilesTree(BASE | config)), store)
    assert verdict.resolved, verdict.detail


@pytest.mark.parametrize(
    ("options", "option"),
    [("addopts = -n2", "-n2"), ("python_functions = check_*", "python_functions")],
    ids=["a missing plug-in", "functions of other names"],
)
def test_detail_names_the_option_that_prevents_tests(
    store: TemplateStore, options: str, option: str
) -> None:
    tests = "def test_total():\n    from cart import total\n\n    assert total([9], 2) == 7\n"
    config = {"pytest.ini": f"[pytest]\n{options}\n"}
    task = replace(with_hidden(tests, "test_total"), tree=FilesTree(BASE | config))
    verdict = graded_gold(task, store)
    assert verdict.reason is GradeReason.TESTS_FAILED
    assert option in verdict.detail


def test_detail_reports_tests_that_use_too_much_memory(store: TemplateStore) -> None:
    source = f"x = b'x' * (2 << 30)\n{BASE['cart.py']}"
    template = store.get(TASK)
    limits = replace(template.spec.limits, memory_bytes=256 << 20)
    template = replace(template, spec=replace(template.spec, limits=limits))
    assert "memory" in grade(TASK, template, patch_of({"cart.py": source})).detail
