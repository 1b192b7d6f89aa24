"""Calibration: makes the plan of a task from test runs with the gold patch and at base."""

import logging
from random import Random
from time import perf_counter

from coding_gym.errors import GradingError
from coding_gym.grade import TestStatus
from coding_gym.grading.candidates import CandidateFinder, reached_checks
from coding_gym.grading.checked_runs import CheckedRuns
from coding_gym.grading.plan import Plan
from coding_gym.grading.report import TestRun
from coding_gym.grading.selection import Selection
from coding_gym.grading.tree import TestTree
from coding_gym.grading.unit_choice import UnitChoice
from coding_gym.task import Task

_log = logging.getLogger(__name__)
_USUAL_RUNS = 20  # of the tests, in a typical calibration
_LONG_S = 300.0  # `calibrate` logs a warning if the runs will probably take longer


def calibrate(task: Task, tree: TestTree, gold: Selection, rng: Random) -> Plan:
    """Returns the plan of a task.

    The plan is not calibrated if no change of the gold patch is graded, if the first run with the
    patch is incomplete, or if no test passes in every run.

    Args:
        task: The task.
        tree: The base tree, which runs the tests.
        gold: The graded part and the dropped part of the gold patch.
        rng: Source of random choices.

    Raises:
        GradingError: With the gold patch, the tests do not start, or their run is killed; or a
            fail-to-pass test fails without a change of the gold patch that is dropped.
    """
    if gold == Selection():
        return Plan()
    start = perf_counter()
    first = tree.run(gold.patch)
    duration_s = perf_counter() - start
    _check_first_run(first)
    _check_dropped(task, tree, gold, first)
    if gold.patch.is_empty or not first.is_whole:
        return Plan()
    if _USUAL_RUNS * duration_s > _LONG_S:
        message = "the plan of %s takes about %d test runs of %.0f s; later grades reuse this plan"
        _log.warning(message, task.task_id, _USUAL_RUNS, duration_s)
    return _plan(CheckedRuns(task, tree, gold.patch, first, duration_s), rng)


def _plan(checked: CheckedRuns, rng: Random) -> Plan:
    """Returns the plan of a task whose first run is complete."""
    task = checked.task
    runs = [checked.first, *checked.drop_failing_checks()]
    statuses = {t: {run.status(checked.name(t, run)) for run in runs} for t in task.expected_tests}
    stable = [test for test in statuses if statuses[test] == {TestStatus.PASSED}]
    unstable = [t for t in statuses if TestStatus.PASSED in statuses[t] and t not in stable]
    if not stable:
        return Plan()
    graded_tests = [*stable, *(test for test in unstable if test in task.fail_to_pass)]
    reached = reached_checks(checked, graded_tests, runs[1:])
    candidates = CandidateFinder(checked, reached, rng).find()
    candidates = [units for units in candidates if not {*units[0].tests} <= {*unstable}]
    choice = UnitChoice(checked, reached, candidates, stable, rng)
    is_alone = False
    if candidates:
        choice.choose()
        is_alone = choice.verify_alone()
    return Plan(
        is_calibrated=True,
        challenge=choice.final_challenge(),
        unstable=tuple(unstable),
        xfailing=tuple(t for t in statuses if statuses[t] == {TestStatus.XFAILED}),
        is_plain=checked.is_plain,
        is_alone=is_alone,
    )


def _check_first_run(run: TestRun) -> None:
    """Raises a `GradingError` if the tests did not run: the plan would have no units."""
    if run.start_error:
        raise GradingError(f"the tests do not start with the gold patch: {run.start_error}")
    if run.timed_out or run.out_of_memory or run.is_lost:
        end = "timed out" if run.timed_out else "was killed"
        raise GradingError(f"the run of the tests with the gold patch {end}")


def _check_dropped(task: Task, tree: TestTree, gold: Selection, run: TestRun) -> None:
    """Raises a `GradingError` if a fail-to-pass test fails without a dropped change."""
    files = {*tree.paths}.intersection(gold.dropped_paths)
    failed_tests = [t for t in task.fail_to_pass if run.status(t) is not TestStatus.PASSED]
    if files and run.is_whole and failed_tests:
        raise GradingError(
            f"task {task.task_id} cannot be graded: {failed_tests[0]} fails without the gold "
            f"patch's change of {min(files)}; this change is dropped, because the file contains "
            "expected tests; remedy: move the tests of this file into another file"
        )
