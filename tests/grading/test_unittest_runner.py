"""The runner of unittest's own tests: what it runs, by which names, and what cannot fool it."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from unittest_task import BASE, BUGGY, FIXED, HIDDEN, PATH, TASK

from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

# Does what follows it, twice indented, with each object that reports to the grader.
_EACH_REPORTER = (
    "import gc\n\nfor thing in gc.get_objects():\n    if type(thing).__name__ == 'Reporter':\n"
)
# Replaces what runs a test by something that reports success for tests of its choice.
_REPORTING = (
    "import unittest\n\n\n"
    "def run(self, result=None):\n"
    "    result.startTest(self)\n"
    "    result.addSuccess(self)\n"
    "    result.stopTest(self)\n\n\n"
)
_FAKES = (
    "import sys, unittest\n\n\n"
    "def fake(name, *methods):\n"
    "    space = {'__module__': 'tests.test_clock', '__qualname__': name}\n"
    "    return type(name, (unittest.TestCase,), space | dict.fromkeys(methods, lambda self: 0))\n"
    "\n\n"
    "add_ = fake('AddTest', 'test_carries', 'test_carries_twice', 'test_within')\n"
    "show_ = fake('ShowTest', 'test_pads')\n"
    "add_.test_carries_twice = lambda self: 0\n"
    "add_.test_carries_twice.__doc__ = 'Two hours are carried at once.'\n"
    "load = unittest.defaultTestLoader.loadTestsFromTestCase\n"
    "suite = unittest.TestSuite([load(add_), load(show_)])\n"
)
# Those that end the run, or keep tests from running: nothing is reported as passed that did not.
ENDING = {
    "SystemExit": "import sys\n\nsys.exit(0)\n",
    "tests that skip": (
        "import unittest\n\n\n"
        "def add(hour, minute, minutes):\n"
        "    raise unittest.SkipTest('not today')\n"
    ),
    "a file that skips": "import unittest\n\nraise unittest.SkipTest('not today')\n",
    "failures that are skips": (
        "import unittest\n\nunittest.TestCase.failureException = unittest.SkipTest\n"
    ),
    "failures that were expected": (
        "import unittest\n\n"
        "run = unittest.TestCase.run\n\n\n"
        "def lenient(self, result=None):\n"
        "    self.__unittest_expecting_failure__ = True\n"
        "    getattr(self, self._testMethodName).__func__.__unittest_expecting_failure__ = True\n"
        "    return run(self, result)\n\n\n"
        "unittest.TestCase.run = lenient\n"
    ),
    "a result of unittest's that is quiet": (
        "import unittest\n\n"
        "for kind in (unittest.TestResult, unittest.TextTestResult):\n"
        "    kind.addFailure = kind.addError = lambda self, test, err: self.addSuccess(test)\n"
    ),
    "records by the reporter itself": (
        f"{_EACH_REPORTER}"
        "        for method in ('test_carries', 'test_carries_twice'):\n"
        "            for when in ('setup', 'call', 'teardown'):\n"
        "                name = f'tests/test_clock.py::AddTest::{method}'\n"
        "                thing.send('test', name, when, 'passed', False, '')\n"
    ),
    # The names that a log shows are given away by the tests that fail to one that passes.
    "names that are given away": (
        "import unittest\n\n"
        "for kind in (unittest.TestCase,):\n"
        "    shown, told = kind.__str__, kind.shortDescription\n"
        "    kind.shortDescription = lambda self: (\n"
        "        'Two hours are carried at once.' if 'pads' in self._testMethodName else None\n"
        "    )\n"
        "    kind.__str__ = lambda self: (\n"
        "        'test_carries (tests.test_clock.AddTest)'\n"
        "        if 'pads' in self._testMethodName else 'nothing'\n"
        "    )\n"
        "    kind.id = kind.__str__\n"
    ),
    "names beside the true ones": (
        f"{_EACH_REPORTER}"
        "        for name in ('test_carries (tests.test_clock.AddTest)',\n"
        "                     'Two hours are carried at once.'):\n"
        "            for when in ('setup', 'call', 'teardown'):\n"
        "                thing.send('test', name, when, 'passed', False, '')\n"
    ),
}
# Those that make failures pass, by which they are known.
FORGING = {
    "tests that are not run": f"{_REPORTING}unittest.TestCase.run = run\n",
    "comparisons that say nothing": (
        "import unittest\n\n"
        "for name in dir(unittest.TestCase):\n"
        "    if name.startswith('assert'):\n"
        "        setattr(unittest.TestCase, name, lambda *values, **options: None)\n"
    ),
    "a result of ours that says passed": (
        "import gc\n\n"
        "for thing in gc.get_objects():\n"
        "    if isinstance(thing, type) and thing.__name__ == '_Result':\n"
        "        thing.addFailure = lambda self, test, error: self.addSuccess(test)\n"
        "        thing.addError = thing.addFailure\n"
    ),
    "a reporter that says passed": (
        f"{_EACH_REPORTER}"
        "        send = thing.send\n"
        "        thing.send = lambda kind, name, when='', outcome='', *rest: send(\n"
        "            kind, name, *([when, 'passed', False, ''] if kind == 'test' else [])\n"
        "        )\n"
    ),
    "a run of other tests first": f"{_FAKES}unittest.TextTestRunner().run(suite)\n",
    "a module of other tests": (
        f"{_FAKES}"
        "module = type(sys)('tests.test_clock')\n"
        "module.__file__ = sys.modules['tests.test_clock'].__file__\n"
        "module.AddTest, module.ShowTest = add_, show_\n"
        "sys.modules['tests.test_clock'] = module\n"
    ),
    "tests that are all the same": (
        "import unittest\n\n"
        "unittest.TestCase.__eq__ = lambda self, other: 'carries' in self._testMethodName\n"
        "unittest.TestCase.__hash__ = lambda self: 0\n"
        f"{_REPORTING}unittest.TestCase.run = run\n"
    ),
}


GradeSource = Callable[..., Grade]


@pytest.fixture
def grade_source(store: TemplateStore) -> GradeSource:
    """Grades a new ``clock.py``, with a task that differs in some fields."""

    def run(source: str, **changes: object) -> Grade:
        task = replace(TASK, **changes)  # type: ignore[arg-type]
        return grade(task, store.get(task), Patch.between(BASE, BASE | {"clock.py": source}))

    return run


def with_tests(tests: str, *expected: str) -> dict[str, object]:
    """Fields of a task whose hidden file holds other tests."""
    return {
        "test_patch": Patch.between(
            {}, {PATH: f"import unittest\n\nimport clock\n\n\n{tests}"}
        ).text,
        "fail_to_pass": expected,
        "pass_to_pass": (),
    }


@pytest.mark.parametrize(
    "command",
    [
        "",
        "python3 -W error -m unittest -v -f tests/test_clock.py",
        "TZ=UTC python -m unittest discover -s tests -t . --failfast",
    ],
)
def test_gold_resolves_however_tests_are_started(grade_source: GradeSource, command: str) -> None:
    assert grade_source(FIXED, test_command=command).resolved
    verdict = grade_source(f"{BUGGY}\nVERSION = 2\n", test_command=command)
    assert verdict.reason is GradeReason.TESTS_FAILED, verdict
    assert set(verdict.fail_to_pass.values()) == {TestStatus.FAILED}
    assert set(verdict.pass_to_pass.values()) == {TestStatus.PASSED}


def test_every_spelling_of_every_ending_is_known(grade_source: GradeSource) -> None:
    endings = {"test_pads": "passed", "test_skipped": "skipped"}
    endings["test_expected"] = "passed"  # it fails with the gold patch as well, as it is to
    place = "tests.test_clock.ShowTest"
    statuses = {
        spelling: status
        for name, status in endings.items()
        for spelling in (f"{name} ({place})", f"{name} ({place}.{name})", f"{place}.{name}")
    }
    carried = {f"{number} hours are carried at once." for number in ("Two", "Three")}
    statuses |= {line: "passed" if "Two" in line else "missing" for line in carried}
    statuses["test_gone (tests.test_clock.A)"] = "missing"
    verdict = grade_source(FIXED, pass_to_pass=tuple(statuses))
    assert verdict.pass_to_pass == statuses


def test_modules_are_found_below_the_start_of_discovery(grade_source: GradeSource) -> None:
    tests = ("test_carries (test_clock.AddTest)", "Two hours are carried at once.")
    discover = "python -m unittest discover"
    for command in ("", f"{discover} tests", f"{discover} -s tests"):
        verdict = grade_source(FIXED, fail_to_pass=tests, pass_to_pass=(), test_command=command)
        assert (verdict.resolved, verdict.levels) == (True, {"value": 2}), verdict


SET_UP_CLASS = "@classmethod\n    def setUpClass(cls):\n        "


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("def setUp(self):\n        clock.gone()", "failed"),
        ("def tearDown(self):\n        clock.gone()", "failed"),
        (f"{SET_UP_CLASS}clock.gone()", "missing"),
        (f"{SET_UP_CLASS}raise unittest.SkipTest('no')", "missing"),
        ("clock.gone()", "missing"),
    ],
)
def test_failure_around_a_test_counts_for_it(
    grade_source: GradeSource, fault: str, status: str
) -> None:
    test = "test_it (tests.test_clock.ItTest)"
    tests = (
        f"class ItTest(unittest.TestCase):\n    {fault}\n\n    def test_it(self):\n        pass\n"
    )
    verdict = grade_source(FIXED, **with_tests(tests, test))
    assert (verdict.reason, verdict.fail_to_pass[test]) == (GradeReason.TESTS_FAILED, status)
    assert verdict.detail


def test_failed_subtest_fails_and_skipped_one_skips(grade_source: GradeSource) -> None:
    tests = (
        "class PartTest(unittest.TestCase):\n"
        "    def test_fails(self):\n"
        "        for number in range(3):\n"
        "            with self.subTest(number=number):\n"
        "                self.assertNotEqual(number, 1)\n\n"
        "    def test_skips(self):\n"
        "        with self.subTest(number=1):\n"
        "            self.skipTest('later')\n"
    )
    names = [f"{name} (tests.test_clock.PartTest)" for name in ("test_fails", "test_skips")]
    verdict = grade_source(FIXED, **with_tests(tests, *names))
    assert list(verdict.fail_to_pass.values()) == ["failed", "skipped"]


def test_a_description_that_tests_share_stands_for_all_of_them(grade_source: GradeSource) -> None:
    tests = (
        "class Shared:\n"
        "    def test_shared(self):\n"
        '        """It adds."""\n'
        "        self.assertEqual(clock.add(0, self.start, 2)[1], 4)\n\n\n"
        "class OneTest(Shared, unittest.TestCase):\n    start = 2\n\n\n"
        "class TwoTest(Shared, unittest.TestCase):\n    start = {}\n"
    )
    verdict = grade_source(FIXED, **with_tests(tests.format(2), "It adds."))
    assert verdict.resolved, verdict
    verdict = grade_source(FIXED, **with_tests(tests.format(3), "It adds."))
    assert verdict.fail_to_pass == {"It adds.": "failed"}


@pytest.mark.parametrize("code", ENDING.values(), ids=ENDING.keys())
def test_code_that_attacks_the_run_is_not_resolved(grade_source: GradeSource, code: str) -> None:
    verdict = grade_source(f"{BUGGY}\n\n{code}")
    assert verdict.reason in (GradeReason.TESTS_FAILED, GradeReason.TAMPERED), verdict
    assert TestStatus.PASSED not in verdict.fail_to_pass.values()


@pytest.mark.parametrize("code", FORGING.values(), ids=FORGING.keys())
def test_forgery_is_named_and_earns_nothing(grade_source: GradeSource, code: str) -> None:
    verdict = grade_source(f"{BUGGY}\n\n{code}")
    assert (verdict.reason, verdict.pass_fraction) == (GradeReason.TAMPERED, 0.0), verdict


def test_files_beside_the_source_neither_help_nor_hurt(store: TemplateStore) -> None:
    files = {
        PATH: HIDDEN.replace("(2, 10)", "(1, 10)").replace("(3, 10)", "(1, 10)"),
        "test_clock.py": "import os\n\nos._exit(0)\n",
        "unittest.py": "raise SystemExit(0)\n",
        "sitecustomize.py": "raise SystemExit(0)\n",
    }
    wrong = f"{BUGGY}\nVERSION = 2\n"
    for source, reason in ((FIXED, GradeReason.RESOLVED), (wrong, GradeReason.TESTS_FAILED)):
        patch = Patch.between(BASE, BASE | files | {"clock.py": source})
        assert grade(TASK, store.get(TASK), patch).reason is reason
