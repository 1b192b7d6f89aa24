"""Django's log format, with a small project that starts its tests as Django does."""

from collections.abc import Mapping
from dataclasses import replace
from unittest.mock import patch

import pytest
from grading_fixtures import made_task

from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.grading.grader import new_plan
from coding_gym.grading.tree import TestTree
from coding_gym.patch import Patch
from coding_gym.rewards import fraction_passed
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

RUNNER = """\
import os
import unittest


class Runner:
    test_suite = unittest.TestSuite

    def build_suite(self, label):
        (cases,) = unittest.defaultTestLoader.loadTestsFromName(label)
        return self.test_suite(cases)

    def run_suite(self, suite):
        return unittest.TextTestRunner(verbosity=2).run(suite)
"""
RUNTESTS = """\
import sys

sys.path.append('.')
from kit.runner import Runner

runner = Runner()
result = runner.run_suite(runner.build_suite(sys.argv[1]))
sys.exit(bool(result.failures or result.errors))
"""
BUGGY = "def title(words):\n    return words.title()\n"
FIXED = "def title(words):\n    return ' '.join(word.capitalize() for word in words.split())\n"
PATH = "tests/text_tests/tests.py"
HIDDEN = """\
import unittest

from kit.text import title


class Cases:
    def test_one_word(self):
        self.assertEqual(title('one'), 'One')


class TitleTests(Cases, unittest.TestCase):
    def test_apostrophe(self):
        '''
        Letters after an apostrophe stay small.

        As in English.
        '''
        self.assertEqual(title("don't do"), "Don't Do")

    def test_digits(self):
        self.assertEqual(title('1st one'), '1st One')

    def test_words(self):
        self.assertEqual(title('one two'), 'One Two')
"""
BASE = {
    "kit/__init__.py": "",
    "kit/runner.py": RUNNER,
    "kit/text.py": BUGGY,
    "tests/runtests.py": RUNTESTS,
    "tests/text_tests/__init__.py": "",
}
TASK = made_task(
    "kit-title",
    BASE,
    {"kit/text.py": FIXED},
    {PATH: HIDDEN},
    runner="swebench",
    test_report="django",
    test_command="python tests/runtests.py text_tests.tests",
    fail_to_pass=(
        "Letters after an apostrophe stay small.",
        "test_digits (text_tests.tests.TitleTests.test_digits)",
    ),
    pass_to_pass=(
        "test_one_word (text_tests.tests.TitleTests.test_one_word)",
        "test_words (text_tests.tests.TitleTests.test_words)",
    ),
)

# Code that a patch appends to the project's own test runner.
_FORGED_RUNNERS = {
    "a runner that runs nothing": (
        "class Result:\n"
        "    failures = errors = ()\n\n\n"
        "Runner.run_suite = lambda self, suite: Result()\n"
    ),
    "a suite that runs nothing": (
        "class Suite(unittest.TestSuite):\n"
        "    def run(self, result, debug=False):\n"
        "        for test in self:\n"
        "            result.startTest(test)\n"
        "            result.addSuccess(test)\n"
        "            result.stopTest(test)\n"
        "        return result\n\n\n"
        "Runner.test_suite = Suite\n"
    ),
    "a runner that lets tests run again until they pass": (
        "run = unittest.TestCase.run\n\n\n"
        "def again(self, result=None):\n"
        "    if not run(self, unittest.TestResult()).wasSuccessful():\n"
        "        setattr(self, self._testMethodName, lambda: None)\n"
        "    return run(self, result)\n\n\n"
        "unittest.TestCase.run = again\n"
    ),
}


def grade_tree(store: TemplateStore, task: Task, changes: Mapping[str, str]) -> Grade:
    return grade(task, store.get(task), Patch.between(BASE, BASE | changes))


def test_gold_resolves_and_base_fails(store: TemplateStore) -> None:
    verdict = grade_tree(store, TASK, {"kit/text.py": FIXED})
    assert (verdict.resolved, set(verdict.levels)) == (True, {"value"}), verdict
    verdict = grade_tree(store, TASK, {"kit/text.py": f"{BUGGY}\nVERSION = 2\n"})
    assert verdict.reason is GradeReason.TESTS_FAILED
    assert set(verdict.fail_to_pass.values()) == {TestStatus.FAILED}, verdict


@pytest.mark.parametrize("code", _FORGED_RUNNERS.values(), ids=_FORGED_RUNNERS.keys())
def test_forgery_in_the_test_runner_is_not_resolved(store: TemplateStore, code: str) -> None:
    verdict = grade_tree(store, TASK, {"kit/runner.py": f"{RUNNER}\n\n{code}"})
    runs_nothing = "run_suite" in code
    expected = GradeReason.TESTS_FAILED if runs_nothing else GradeReason.TAMPERED
    assert (verdict.reason, verdict.resolved) == (expected, False), verdict


def test_a_repair_that_also_changes_the_runner_resolves(store: TemplateStore) -> None:
    base = BASE | {"kit/runner.py": RUNNER + "x = 1\n"}
    task = replace(TASK, tree=FilesTree(base))
    patch = Patch.between(base, BASE | {"kit/text.py": FIXED})
    assert grade(task, store.get(task), patch).resolved


def test_changes_of_scripts_that_start_tests_are_dropped(store: TemplateStore) -> None:
    files = {"tests/runtests.py": "", PATH: "", "tests/text_tests/models.py": ""}
    verdict = grade_tree(store, TASK, {"kit/text.py": FIXED, **files})
    assert verdict.resolved
    assert verdict.dropped_paths == tuple(sorted(files))


_RUNNER_OF_SYMPY = """\
import sys

sys.path[:0] = [".", "tests"]
import test_text

for name in ("test_words", "test_none"):
    try:
        getattr(test_text, name)()
        print(name, "ok")
    except AssertionError:
        print(name, "F")
"""


_ASSERTIONS = ("assert title('a b') == 'A B'", "assert title('') == ''")


def _sympy_task(hidden: str) -> Task:
    return made_task(
        "sympy-title",
        {"bin/test.py": _RUNNER_OF_SYMPY, "text.py": BUGGY.replace(".title()", "[:1]")},
        {"text.py": FIXED},
        {"tests/test_text.py": f"from text import title\n\n\n{hidden}"},
        runner="swebench",
        test_report="sympy",
        test_command="python bin/test.py",
        fail_to_pass=("test_words",),
        pass_to_pass=("test_none",),
    )


def test_functions_of_sympy_are_found_in_the_files_of_the_test_patch(store: TemplateStore) -> None:
    task = _sympy_task(
        "def test_words():\n    {}\n\n\ndef test_none():\n    {}\n".format(*_ASSERTIONS)
    )
    template = store.get(task)
    verdict = grade(task, template, Patch(task.gold_patch))
    assert (verdict.resolved, verdict.is_verified, verdict.levels) == (True, True, {"value": 1})
    forgery = Patch.between(
        {"text.py": BUGGY.replace(".title()", "[:1]")},
        {"text.py": "class title(str):\n    __eq__ = lambda self, other: True\n"},
    )
    assert not grade(task, template, forgery).resolved


def test_rows_that_cannot_be_challenged_are_not_verified(store: TemplateStore) -> None:
    lambdas = "def check(): {}\n\n\ndef none(): {}\n\n\ntest_words, test_none = check, none\n"
    task = _sympy_task(lambdas.format(*_ASSERTIONS))
    template = store.get(task)
    with patch.object(TestTree, "run", autospec=True, side_effect=TestTree.run) as run:
        new_plan(task, template)
    assert run.call_count == 3  # three runs show whether a test is flaky
    verdict = grade(task, template, Patch(task.gold_patch))
    assert (verdict.resolved, verdict.is_verified, verdict.bits) == (True, False, 0), verdict
    assert (verdict.levels, fraction_passed(verdict)) == ({"structure": 1}, 0)
    assert verdict.challenge == "not challenged"
    with patch.object(TestTree, "run", autospec=True, side_effect=TestTree.run) as run:
        assert grade(task, template, Patch(task.gold_patch)).resolved
    assert run.call_count == 1  # no second version exists
