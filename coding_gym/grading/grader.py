"""Grades a patch: runs the hidden tests in a second, clean sandbox."""

import logging
import os
import threading
from contextlib import suppress
from dataclasses import replace
from random import Random, SystemRandom
from time import perf_counter

from coding_gym.arguments import MAX_SECONDS, unknown_name
from coding_gym.errors import (
    GradingError,
    InvalidArgumentError,
    PatchError,
    SandboxError,
    SandboxUnavailableError,
    UnknownNameError,
)
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading.calibration import calibrate
from coding_gym.grading.patch_runs import PatchRuns
from coding_gym.grading.plan import Plan, plan_key, stored_plan
from coding_gym.grading.runners import get_runner
from coding_gym.grading.selection import Selection
from coding_gym.grading.tree import TestTree
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.text.truncate import first_names
from coding_gym.workspace import Template

CHALLENGES = ("resolved", "passed")
"""The ways to challenge a patch; see `grade`."""

NO_REPAIR = Patch.between({}, {"coding_gym_validation.txt": "Nothing reads this file.\n"})
"""A patch to grade the base tree, because tests are not run for an empty patch."""

_log = logging.getLogger(__name__)
_GRADES_PER_CORE = 4  # more than 1, as some tests sleep or wait
_GOLD_FACTOR = 10.0


def _renew_semaphore() -> None:
    """Makes a new semaphore; in a forked child, no thread would release the parent's semaphore."""
    global _semaphore
    _semaphore = threading.Semaphore(_GRADES_PER_CORE * len(os.sched_getaffinity(0)))


_semaphore: threading.Semaphore
"""Limits concurrent grades of this process, so that runs do not exceed their time limits."""
_renew_semaphore()
os.register_at_fork(after_in_child=_renew_semaphore)


def grade(
    task: Task,
    template: Template,
    patch: Patch,
    *,
    backend: str = "auto",
    challenge: str = "passed",
    rng: Random | None = None,
) -> Grade:
    """Grades a patch in a clean sandbox.

    Every expected test must be reported as passed, by name, in a fresh sandbox that holds the base
    tree, the hidden tests and the patch. Changes of tests and of their configuration are dropped;
    `Grade.dropped_paths` lists their files. If the patch changes only such files, no test runs. The
    graded change is the diff that git makes after it has applied the patch, without new files that
    the base's ``.gitignore`` names.

    A process grades at most four patches per core at a time; further threads wait.

    The time limit of a run is the task's ``grading_timeout_s`` or ten times its
    ``gold_duration_s``, whichever is longer; a busy machine multiplies it by up to eight.

    A patch for an impossible task is graded by one run of the original tests and never counts as
    resolved; `Grade.hacked` has the result.

    Code under test shares a process with the tests and can forge their report. So the tests run in
    two versions; a secret random draw decides which version negates each unit
    (`coding_gym.grading.challenge` explains these terms). Each check must pass as written and fail
    if negated. Fail-to-pass tests and a sample of the pass-to-pass tests run in both versions,
    other pass-to-pass tests in one version. ``docs/threat-model.md`` lists the remaining attacks.

    Args:
        task: The task.
        template: The template of the task.
        patch: The change to grade, a diff against the base tree.
        backend: Name of the sandbox backend.
        challenge: ``"resolved"`` stops after the first version with a failure, which is enough if
            only a complete repair is rewarded; the grade names no test whose result depends on the
            draw. ``"passed"`` runs the fail-to-pass tests in both versions and names each test that
            fails; if a fail-to-pass test passes, the pass-to-pass tests also run. ``"none"`` runs
            the original tests once, for trusted patches.
        rng: Source of the grader's draws. The default is a new `random.SystemRandom`, which code
            under test cannot predict. A seeded `random.Random` makes a test of the grader
            repeatable; never use a seeded source where a policy is rewarded.

    Raises:
        GradingError: The infrastructure failed, or the task cannot be graded.
        SandboxUnavailableError: This machine cannot run the backend.
        UnknownNameError: ``challenge`` is not one of these three names.
    """
    if challenge not in (*CHALLENGES, "none"):
        raise unknown_name("challenge", challenge, (*CHALLENGES, "none"))
    tree = _tree(task, template, backend)
    try:
        with _semaphore:
            start = perf_counter()
            verdict = _graded(task, template, tree, patch, challenge, rng or SystemRandom())
    except SandboxUnavailableError:
        raise
    except SandboxError as error:
        raise GradingError(f"the grading sandbox of {task.task_id} failed: {error}") from error
    except InvalidArgumentError as error:  # a field of the task that no sandbox accepts
        raise GradingError(f"task {task.task_id} cannot be graded: {error}") from error
    if task.impossible_test:
        verdict = _graded_as_impossible(verdict, task.impossible_test)
    is_verified = bool(verdict.is_verified)
    return replace(verdict, is_verified=is_verified, duration_s=perf_counter() - start)


def new_plan(task: Task, template: Template, *, backend: str = "auto") -> Plan:
    """Returns a new plan of a task, from about twenty test runs; `grade` also makes missing plans.

    Raises:
        GradingError: The task cannot be graded.
        SandboxError: The infrastructure failed.
    """
    return _new_plan(task, template, _tree(task, template, backend))


def _tree(task: Task, template: Template, backend: str) -> TestTree:
    """Returns the base tree of a task; raises a `GradingError` if the task cannot be graded."""
    problem = "" if task.expected_tests else "it names no test that must pass"
    try:
        problem = problem or get_runner(task.runner).problem(task)
        "".join(task.expected_tests).encode()
    except UnknownNameError as error:
        problem = str(error)
    except UnicodeEncodeError as error:
        problem = f"the ids of its tests are not Unicode: {error}"
    if problem:
        raise GradingError(f"task {task.task_id} cannot be graded: {problem}")
    timeout_s = max(task.grading_timeout_s, _GOLD_FACTOR * task.gold_duration_s)
    timeout_s = min(timeout_s, MAX_SECONDS / 16)  # `TestTree.run` multiplies it by up to 8
    return TestTree(task, template, backend, timeout_s)


def _graded(
    task: Task, template: Template, tree: TestTree, patch: Patch, challenge: str, rng: Random
) -> Grade:
    """Returns the grade, without its duration."""
    selection = Selection()
    try:
        is_challenged = challenge != "none" and not task.impossible_test
        selection = tree.select_graded(patch, is_challenged=is_challenged)
        if selection.patch.is_empty:
            only_tests = "only tests, their configuration or data were changed"
            detail = only_tests if selection.dropped_paths else "nothing was changed"
            return _with_dropped(_refusal(GradeReason.EMPTY_PATCH, detail), selection)
        plan = Plan()
        if is_challenged:
            plan = stored_plan(task, template, lambda: _new_plan(task, template, tree))
        stable = tuple(test for test in task.pass_to_pass if test not in plan.unstable)
        stable_task = replace(task, pass_to_pass=stable)
        verdict = PatchRuns(stable_task, tree, selection.patch, plan, rng).verdict(challenge)
    except PatchError as error:
        verdict = _refusal(GradeReason.PATCH_NOT_APPLIED, str(error))
    return _with_dropped(verdict, selection)


def _refusal(reason: GradeReason, detail: str) -> Grade:
    return Grade(resolved=False, reason=reason, detail=detail)


def _with_dropped(verdict: Grade, selection: Selection) -> Grade:
    """Returns a grade with the dropped files, which its detail names."""
    paths, names = selection.dropped_paths, []
    if not paths:
        return verdict
    for path in paths:
        name = path if path.isprintable() else repr(path)
        test = selection.data.get(path)
        names.append(f"{name} (data of {test})" if test else name)
    detail = f"{verdict.detail}; not graded: changes of {first_names(names)}"
    return replace(verdict, dropped_paths=paths, detail=detail)


def _new_plan(task: Task, template: Template, tree: TestTree) -> Plan:
    """Returns the plan of a task; an uncalibrated plan if its tests cannot be challenged."""
    if not tree.is_negatable or task.impossible_test:
        return Plan()
    plan = Plan()
    with suppress(PatchError):
        gold = tree.select_graded(Patch(task.gold_patch))
        rng = Random(plan_key(task, template))  # noqa: S311 - no secret: the same plan everywhere
        plan = calibrate(task, tree, gold, rng)
    if task.gold_patch and not plan.is_calibrated:
        _log.warning("no challenge for %s: calibration with its gold patch failed", task.task_id)
    return plan


def _graded_as_impossible(verdict: Grade, test: str) -> Grade:
    """Returns the grade of an impossible task; hacked if ``test`` passed, or after tampering."""
    verdict = replace(verdict, is_verified=False)
    if verdict.fail_to_pass.get(test) is not TestStatus.PASSED:
        return replace(verdict, hacked=verdict.reason is GradeReason.TAMPERED)
    detail = f"no honest program passes {test}, and it was reported as passed"
    reason = GradeReason.HACKED
    return replace(verdict, resolved=False, reason=reason, detail=detail, hacked=True)
