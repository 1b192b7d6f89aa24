"""Runs that do not end, environments without pytest, and the number of concurrent grades."""

import ast
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import resources
from typing import Any
from unittest import mock

import pytest
from grading_fixtures import BASE, FIXED, TASK, graded, graded_gold, with_hidden

from coding_gym.errors import GradingError
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading import calibration, grade, new_plan
from coding_gym.grading.report import TestRun
from coding_gym.grading.runners import pytest_runner
from coding_gym.grading.selection import Selection
from coding_gym.grading.supervision import run_tests
from coding_gym.grading.tree import TestTree
from coding_gym.patch import Patch
from coding_gym.sandbox import default_interpreter, open_sandbox
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

# Child processes use most of the processor time, and no parent waits for them.
SPINNING = "import os\n\nfor _ in range(4):\n    os.fork()\nwhile True:\n    pass\n"
SLEEPING = "import threading\n\nthreading.Event().wait()\n"

GradeSource = Callable[..., Grade]


@pytest.fixture
def grade_source(store: TemplateStore) -> GradeSource:
    """Returns a function that grades a new ``cart.py`` within a time limit."""
    graded_gold(TASK, store)  # makes the plan

    def run(source: str, limit_s: float = 1.0) -> Grade:
        task = replace(TASK, grading_timeout_s=limit_s)
        return graded(task, store, {"cart.py": source})

    return run


@pytest.mark.parametrize("source", [SPINNING, SLEEPING])
def test_tests_that_do_not_end_are_killed(grade_source: GradeSource, source: str) -> None:
    verdict = grade_source(source)
    assert verdict.reason is GradeReason.TIMEOUT
    assert set(verdict.fail_to_pass.values()) == {TestStatus.MISSING}


def test_busy_machine_raises_the_time_limit(
    grade_source: GradeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = os.cpu_count() or 1
    monkeypatch.setattr("os.getloadavg", lambda: (3.0 * cores, 0.0, 0.0))
    with mock.patch.object(pytest_runner, "run_tests", side_effect=run_tests) as spy:
        verdict = grade_source(FIXED, limit_s=40.0)
    assert verdict.resolved
    assert {call.kwargs["timeout_s"] for call in spy.call_args_list} == {120.0}


@pytest.mark.slow
def test_negation_that_hangs_takes_one_time_limit(store: TemplateStore) -> None:
    others = "".join(f"def test_{n}():\n    assert total([{n}], 2) == {n - 2}\n" for n in range(20))
    tests = (
        "import time\nfrom cart import total\n"
        "def check_equal(make, value):\n    while make() != value:\n        time.sleep(0.01)\n"
        f"def test_all():\n    check_equal(lambda: total([9]), 9)\n{others}"
    )
    task = with_hidden(tests, *(f"test_{n}" for n in range(20)))
    task = replace(task, pass_to_pass=with_hidden(tests, "test_all").fail_to_pass)
    runs: list[TestRun] = []

    def run(tree: TestTree, *args: Any, **options: Any) -> TestRun:
        runs.append(original_run(tree, *args, **options))
        return runs[-1]

    original_run = TestTree.run
    with mock.patch.object(TestTree, "run", run):
        plan = new_plan(task, store.get(task))
    assert sum(run.timed_out for run in runs) == 1
    assert plan.counts(task.expected_tests) == {"value": 20, "structure": 1}


def test_long_calibration_logs_a_warning(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    template = store.get(TASK)
    assert new_plan(TASK, template).is_calibrated
    assert not caplog.messages
    monkeypatch.setattr(calibration, "_LONG_S", 0)
    new_plan(TASK, template)
    assert "cart-discount" in caplog.text


def test_gold_patch_that_passes_no_test_logs_a_warning(
    store: TemplateStore, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = Patch.between(BASE, {"cart.py": f"{BASE['cart.py']}\nVERSION = 2\n"}).text
    task = replace(TASK, task_id="wrong-gold", gold_patch=wrong, pass_to_pass=())
    template = store.get(task)
    for _ in range(2):
        assert not grade(task, template, Patch(wrong)).resolved
    assert len([text for text in caplog.messages if "wrong-gold" in text]) == 1


def test_concurrent_grades_of_a_process_are_limited(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 4 * len(os.sched_getaffinity(0))
    barrier, lock = threading.Barrier(limit), threading.Lock()
    num_active, counts = [0], []

    def select_graded(*_: object, **__: object) -> Selection:
        with lock:
            num_active[0] += 1
            counts.append(num_active[0])
        barrier.wait(60)  # ends when the maximum number of threads wait
        with lock:
            num_active[0] -= 1
        return Selection()

    monkeypatch.setattr(TestTree, "select_graded", select_graded)
    template = store.get(TASK)
    with ThreadPoolExecutor(3 * limit) as pool:
        list(pool.map(lambda _: grade(TASK, template, Patch()), range(3 * limit)))
    assert max(counts) == limit


@pytest.mark.parametrize("name", ["bootstrap.py", "plugin.py", "supervisor.py"])
def test_inside_programs_parse_as_python_3_6(name: str) -> None:
    text = resources.files("coding_gym.grading.inside").joinpath(name).read_text(encoding="utf-8")
    assert ast.parse(text, feature_version=(3, 6)).body
    assert "coding_gym" not in text


@pytest.mark.parametrize(
    ("spec", "has_own_pytest", "message"),
    [
        (SandboxSpec(), False, ""),
        (SandboxSpec(python=default_interpreter()), False, "'pytest'"),
        (SandboxSpec(python=default_interpreter()), True, "install_commands"),
    ],
    ids=["no Python", "no pytest", "install commands without pytest"],
)
def test_environment_without_pytest_is_a_grading_error(
    spec: SandboxSpec, has_own_pytest: bool, message: str
) -> None:
    with open_sandbox(spec) as sandbox:
        sandbox.write_file("test_x.py", b"def test_x():\n    pass\n")
        with pytest.raises(GradingError) as caught:
            run_tests(sandbox, ["test_x.py"], has_own_pytest=has_own_pytest, timeout_s=60)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
