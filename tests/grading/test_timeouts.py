"""Tests that do not end, and how many patches are graded at a time."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest import mock

import pytest
from grading_fixtures import FIXED, TASK, graded, graded_gold

from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.grading.selection import Selection
from coding_gym.grading.supervision import TestRunner
from coding_gym.grading.tree import TestTree
from coding_gym.patch import Patch
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

# Most of the time that these use is that of processes which their parents never wait for.
SPINNING = "import os\n\nfor _ in range(4):\n    os.fork()\nwhile True:\n    pass\n"
SLEEPING = "import threading\n\nthreading.Event().wait()\n"
KILLING = "import os\n\nos.kill(os.getppid(), 9)\n"
STOPPING = "import os, signal\n\nos.kill(os.getppid(), signal.SIGSTOP)\nos._exit(0)\n"

GradeSource = Callable[..., Grade]


@pytest.fixture
def grade_source(store: TemplateStore) -> GradeSource:
    """Grades a new ``cart.py`` within a limit."""
    graded_gold(TASK, store)  # makes the plan

    def run(source: str, limit_s: float = 1.0) -> Grade:
        task = replace(TASK, grading_timeout_s=limit_s)
        return graded(task, store, {"cart.py": source})

    return run


@pytest.mark.parametrize("source", [SPINNING, SLEEPING])
def test_tests_that_do_not_end_are_stopped(grade_source: GradeSource, source: str) -> None:
    verdict = grade_source(source)
    assert verdict.reason is GradeReason.TIMEOUT
    assert set(verdict.fail_to_pass.values()) == {TestStatus.MISSING}


def test_killing_the_supervisor_fails_the_tests(grade_source: GradeSource) -> None:
    verdict = grade_source(KILLING, limit_s=60.0)  # a busy machine starts it late
    assert verdict.reason is GradeReason.TESTS_FAILED
    assert "supervisor" in verdict.detail


def test_a_busy_machine_has_more_time(
    grade_source: GradeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = os.cpu_count() or 1
    monkeypatch.setattr("os.getloadavg", lambda: (3.0 * cores, 0.0, 0.0))
    with mock.patch.object(TestRunner, "run", autospec=True, side_effect=TestRunner.run) as running:
        verdict = grade_source(FIXED, limit_s=40.0)
    assert verdict.resolved
    assert {call.kwargs["timeout_s"] for call in running.call_args_list} == {120.0}


@pytest.mark.nightly
def test_a_stopped_supervisor_only_takes_time(grade_source: GradeSource) -> None:
    verdict = grade_source(STOPPING)
    # The supervisor has hardly begun where the machine is busy.
    assert verdict.reason in (GradeReason.TIMEOUT, GradeReason.TESTS_FAILED), verdict


def test_a_process_grades_a_few_patches_at_a_time(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 4 * len(os.sched_getaffinity(0))
    barrier, lock = threading.Barrier(most), threading.Lock()
    now, seen = [0], []

    def select(*_: object) -> Selection:
        with lock:
            now[0] += 1
            seen.append(now[0])
        barrier.wait(60)  # as many as may grade at a time are here
        with lock:
            now[0] -= 1
        return Selection(Patch(), ())

    monkeypatch.setattr(TestTree, "select", select)
    template = store.get(TASK)
    with ThreadPoolExecutor(3 * most) as pool:
        list(pool.map(lambda _: grade(TASK, template, Patch()), range(3 * most)))
    assert max(seen) == most
