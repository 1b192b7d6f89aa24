"""Options of a project's own pytest configuration, and limits that end a run of its tests."""

from dataclasses import replace

import pytest
from grading_fixtures import graded_gold, made_task

from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.task import FilesTree
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

BASE = {"one.py": "def one():\n    return 0\n", "notes.txt": "Nothing.\n"}
TESTS = """\
import pytest

from one import one


@pytest.mark.late
def test_one():
    assert one() == 1


def test_two():
    assert one() < 2
"""
TASK = made_task(
    "one",
    BASE,
    {"one.py": "def one():\n    return 1\n"},
    {"test_one.py": TESTS},
    fail_to_pass=("test_one.py::test_one",),
    pass_to_pass=("test_one.py::test_two",),
)


@pytest.mark.parametrize(
    "options",
    [
        "-m 'not late' -k two --deselect test_one.py::test_one",
        "-x --lf --collect-only",
    ],
)
def test_options_that_select_tests_are_overruled(store: TemplateStore, options: str) -> None:
    config = {"pytest.ini": f"[pytest]\nmarkers = late\naddopts = {options}\n"}
    task = replace(TASK, tree=FilesTree(BASE | config))
    verdict = graded_gold(task, store)
    assert verdict.resolved, verdict.detail


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"pytest.ini": "[pytest]\naddopts = -n2\n"}, "-n2"),
        ({"pytest.ini": "[pytest]\npython_functions = check_*\n"}, "python_functions"),
    ],
    ids=["a missing plug-in", "functions of other names"],
)
def test_detail_names_the_option_that_prevents_tests(
    store: TemplateStore, files: dict[str, str], named: str
) -> None:
    verdict = graded_gold(replace(TASK, tree=FilesTree(BASE | files)), store)
    assert verdict.reason is GradeReason.TESTS_FAILED
    assert named in verdict.detail


def test_detail_reports_tests_that_use_too_much_memory(store: TemplateStore) -> None:
    greedy = f"x = b'x' * (2 << 30)\n{BASE['one.py']}"
    template = store.get(TASK)
    limits = replace(template.spec.limits, memory_bytes=256 << 20)
    small = replace(template, spec=replace(template.spec, limits=limits))
    verdict = grade(TASK, small, Patch.between(BASE, BASE | {"one.py": greedy}))
    assert "memory" in verdict.detail
