"""Validation reports of valid tasks, invalid tasks, and tasks that cannot be built."""

import json
from dataclasses import replace
from unittest import mock

import git
import pytest
from episodes import raising
from grading_fixtures import BASE, FIXED, HIDDEN, TASK

from coding_gym.errors import SandboxError
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import new_plan, plan_key
from coding_gym.patch import Patch
from coding_gym.task import FilesTree, GitTree
from coding_gym.tasks import validation
from coding_gym.tasks.causes import remedy_of_build, unstable_ids
from coding_gym.tasks.validation import Checks, ValidationReport, validate, validate_task

ONCE = Checks(repeats=1)


ONE, OTHER, *_ = TASK.fail_to_pass
KEPT, *_ = TASK.pass_to_pass
NOTHING = Patch.between(BASE, BASE | {"cart.py": BASE["cart.py"] + "\n\nVERSION = 2\n"}).text
BAD = {
    "the gold repairs nothing": {"gold_patch": NOTHING},
    "there is no gold": {"gold_patch": ""},
    "a test passes at base": {"fail_to_pass": (ONE, OTHER, KEPT), "pass_to_pass": ()},
    "no test fails at base": {"fail_to_pass": (KEPT,), "pass_to_pass": ()},
}


@pytest.mark.slow
@pytest.mark.parametrize("changes", BAD.values(), ids=BAD.keys())
def test_bad_task_is_not_ok_and_has_a_detail(store, changes):
    report = validate_task(replace(TASK, **changes), store, ONCE)
    assert (report.ok, report.error) == (False, "")
    assert report.detail
    assert "\n" not in report.detail


@pytest.mark.slow
def test_failed_build_is_an_error_without_verdict(store, tmp_path):
    git.Repo.init(tmp_path / "empty").close()
    task = replace(TASK, tree=GitTree(str(tmp_path / "empty")), base_commit="1" * 40)
    report = validate_task(task, store, ONCE)
    assert not report.ok
    assert "1" * 40 in report.error
    assert (report.gold_reasons, report.noop_reasons, report.detail) == ((), (), "")


@pytest.mark.slow
def test_every_task_has_a_report(store):
    broken = replace(TASK, task_id="odd", gold_patch="--- a\n+++ b\n@@ what @@\n")
    tasks = [broken, *(replace(TASK, task_id=str(number)) for number in range(2))]
    reports = {r.task_id: r for r in validate(tasks, store, checks=ONCE, num_workers=2)}
    assert {name: r.ok for name, r in reports.items()} == {"odd": False, "0": True, "1": True}
    first = reports["0"]
    assert ValidationReport.from_json(json.loads(json.dumps(first.to_json()))) == first


SUBMODULE = (
    "diff --git a/lib b/lib\nindex 1111111..2222222 160000\n--- a/lib\n+++ b/lib\n@@ -1 +1 @@\n"
    f"-Subproject commit {'1' * 40}\n+Subproject commit {'2' * 40}\n"
)
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
FAULTS = {
    "submodule": {"gold_patch": TASK.gold_patch + SUBMODULE},
    "LFS": {"gold_patch": NOTHING, "tree": FilesTree(BASE | {"data.bin": POINTER})},
    "xdist": {"pass_to_pass": (f"{TASK.pass_to_pass[0]}@group_1",)},
}


@pytest.mark.slow
@pytest.mark.parametrize("named", FAULTS)
def test_known_cause_is_named_with_its_remedy(store, named):
    report = validate_task(replace(TASK, task_id="faulty", **FAULTS[named]), store, ONCE)
    assert not report.ok
    assert named in report.detail
    assert "remedy: " in report.detail


LUCK = (
    "import os\n\nimport pytest\n\n\n@pytest.mark.parametrize('n', range(24))\n"
    "def test_now_and_then(n):\n    assert os.urandom(1)[0] % 2 == 0\n"
)


@pytest.mark.slow
def test_missing_test_is_reported_with_the_nearest_names(store):
    tests = HIDDEN | {"test_many.py": LUCK.replace("os.urandom(1)[0] % 2", "n * 0")}
    wanted = "test_many.py::test_now_and_then"
    changes = {"test_patch": Patch.between({}, tests).text, "pass_to_pass": (wanted,)}
    report = validate_task(replace(TASK, **changes), store, ONCE)
    assert (report.ok, report.broken_tests) == (False, (wanted,))
    assert f"{wanted}[" in report.detail


CHANGED_TEST = ONE.partition("::")[0]
CHANGE_OF_TEST = Patch.between({}, {CHANGED_TEST: "MORE = 1\n"}).text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"fail_to_pass": (ONE,), "pass_to_pass": (OTHER, KEPT)}, OTHER),  # fails at base
        ({"gold_patch": TASK.gold_patch + CHANGE_OF_TEST}, CHANGED_TEST),
        ({"grading_timeout_s": 0.01}, ""),  # the gold patch may exceed it
    ],
)
def test_harmless_deviation_is_noted(store, changes, named):
    report = validate_task(replace(TASK, **changes), store, ONCE)
    assert report.ok
    assert named in report.detail


@pytest.mark.parametrize(
    ("test", "is_unstable"),
    [
        ("t.py::test_a[<object at 0x7f00aa11bb22>]", True),
        ("t.py::test_a[2024-05-14]", True),
        ("t.py::test_a[/tmp/pytest-of-me/x0]", True),
        ("t.py::test_a[name-/home/me/x]", True),
        ("t.py::test_a@group", True),
        ("t.py::test_a[me@example.org]", False),
        ("t.py::test_a[1-2]", False),
        ("t.py::test_a[0xff]", False),
    ],
)
def test_id_that_changes_between_runs_is_named(test, is_unstable):
    assert bool([*unstable_ids([test])]) == is_unstable


def test_build_without_tags_has_its_remedy():
    log = "LookupError: setuptools-scm was unable to detect version for /workspace"
    assert "SETUPTOOLS_SCM_PRETEND_VERSION" in remedy_of_build(log)
    assert remedy_of_build("error: no module named x") == ""


@pytest.mark.slow
def test_flaky_tests_are_found(store):
    names = tuple(f"test_luck.py::test_now_and_then[{n}]" for n in range(24))
    tests = Patch.between({}, HIDDEN | {"test_luck.py": LUCK})
    task = replace(TASK, test_patch=tests.text, pass_to_pass=(*TASK.pass_to_pass, *names))
    report = validate_task(task, store, Checks(repeats=2))
    assert report.flaky_tests
    assert set(report.unfit_tests) <= set(names)


@pytest.mark.slow
def test_unstable_test_of_the_bug_is_named(store):
    template = store.get(TASK)
    plan = replace(new_plan(TASK, template), unstable=(ONE,))
    task = replace(TASK, grading_plan=plan.to_text(plan_key(TASK, template)))
    report = validate_task(task, store, ONCE)
    assert (report.ok, report.unstable_tests, report.unfit_tests) == (True, (ONE,), ())
    assert report.detail


@pytest.mark.slow
def test_file_that_contains_the_repair_is_named(store):
    fixed = FIXED.replace("- discount", "- discount  # as in the manual, chapter two")
    gold = Patch.between(BASE, BASE | {"cart.py": fixed}).text
    task = replace(TASK, tree=FilesTree(BASE | {"old/cart.py": fixed}), gold_patch=gold)
    report = validate_task(task, store, ONCE)
    assert (report.ok, report.leaks) == (False, ("old/cart.py",))
    assert "old/cart.py" in report.detail
    assert validate_task(task, store, Checks(repeats=1, looks_for_leaks=False)).ok


@pytest.mark.slow
def test_a_failed_search_for_leaks_is_an_error(store, monkeypatch):
    error = SandboxError("cannot search for the gold patch in /workspace: git: command not found")
    monkeypatch.setattr("coding_gym.tasks.validation.find_leaks", raising(error))
    report = validate_task(TASK, store, ONCE)
    assert not report.ok
    assert "git: command not found" in report.error


RESOLVED = Grade(resolved=True, reason=GradeReason.RESOLVED)
FAILED = Grade(resolved=False, reason=GradeReason.TESTS_FAILED)
HANGS = Grade(resolved=False, reason=GradeReason.TIMEOUT)


@pytest.mark.slow
def test_one_wrong_grade_makes_a_task_invalid(store, monkeypatch):
    checks = Checks(repeats=2, looks_for_leaks=False)
    for grades, is_ok, note in (
        ((RESOLVED, RESOLVED, FAILED, FAILED), True, ""),
        ((RESOLVED, RESOLVED, HANGS, FAILED), True, "time limit"),  # a bug can be an endless loop
        ((RESOLVED, FAILED, FAILED, FAILED), False, "1 of 2"),
        ((RESOLVED, RESOLVED, FAILED, RESOLVED), False, "1 of 2"),
    ):
        monkeypatch.setattr(validation, "grade", mock.Mock(side_effect=grades))
        report = validate_task(TASK, store, checks)
        assert report.ok is is_ok
        assert (*report.gold_reasons, *report.noop_reasons) == tuple(g.reason for g in grades)
        assert note in report.detail
