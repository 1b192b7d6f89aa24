"""Tests that do not end: when a second try may help, and when it only takes time."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from grading_fixtures import FIXED, TASK, graded, graded_gold

from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.grading.report import RunReport
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

GradeSource = Callable[..., tuple[Grade, list[RunReport | None]]]


@pytest.fixture
def grade_source(store: TemplateStore, monkeypatch: pytest.MonkeyPatch) -> GradeSource:
    """Grades a new ``cart.py`` within a limit; returns the grade and what each run reported."""
    graded_gold(TASK, store)  # makes the plan
    runs: list[RunReport | None] = []
    run_tests = TestRunner.run

    def counted(*arguments: Any, **options: Any) -> RunReport | None:
        runs.append(run_tests(*arguments, **options))
        return runs[-1]

    def run(source: str, limit_s: float = 1.0) -> tuple[Grade, list[RunReport | None]]:
        task = replace(TASK, grading_timeout_s=limit_s)
        return graded(task, store, {"cart.py": source}), runs

    monkeypatch.setattr(TestRunner, "run", counted)
    return run


def test_tests_that_spin_for_ever_are_run_once(
    grade_source: GradeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = RunReport.from_verdict  # a busy machine may not give half a core
    monkeypatch.setattr(RunReport, "from_verdict", lambda v: read(v | {"cpu_s": 25 * v["cpu_s"]}))
    verdict, runs = grade_source(SPINNING)
    assert len(runs) == 1
    assert verdict.reason is GradeReason.TIMEOUT
    assert set(verdict.fail_to_pass.values()) == {TestStatus.MISSING}


def test_tests_that_hardly_used_the_cpu_are_run_once_more(grade_source: GradeSource) -> None:
    verdict, runs = grade_source(SLEEPING)
    assert [run is not None and run.is_starved for run in runs] == [True, True]
    assert verdict.reason is GradeReason.TIMEOUT


def test_a_killed_supervisor_is_run_once_more(grade_source: GradeSource) -> None:
    verdict, runs = grade_source(KILLING, limit_s=60.0)  # a busy machine starts it late
    assert runs == [None, None]
    assert verdict.reason is GradeReason.TESTS_FAILED


def test_a_busy_machine_has_more_time(
    grade_source: GradeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = os.cpu_count() or 1
    monkeypatch.setattr("os.getloadavg", lambda: (3.0 * cores, 0.0, 0.0))
    with mock.patch.object(TestRunner, "run", autospec=True, side_effect=TestRunner.run) as running:
        verdict, _ = grade_source(FIXED, limit_s=40.0)
    assert verdict.resolved
    assert {call.kwargs["timeout_s"] for call in running.call_args_list} == {120.0}


@pytest.mark.nightly
def test_a_stopped_supervisor_only_takes_time(grade_source: GradeSource) -> None:
    verdict, _ = grade_source(STOPPING)
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
