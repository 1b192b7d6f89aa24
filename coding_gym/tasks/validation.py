"""Validates tasks: in each repeat, the gold patch must resolve the task and the base must not."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from coding_gym.arguments import at_least_one
from coding_gym.errors import (
    InfrastructureError,
    InvalidTaskError,
    PatchError,
    SandboxUnavailableError,
)
from coding_gym.grade import Grade, GradeReason, TestStatus, levels_text
from coding_gym.grading import NO_REPAIR, grade, new_plan
from coding_gym.grading.plan import stored_plan
from coding_gym.grading.runners import missing_runtime
from coding_gym.json_record import JsonRecord
from coding_gym.patch import Patch
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import Task
from coding_gym.tasks.causes import causes, remedy_of_build
from coding_gym.tasks.cheats import CheatResult, try_cheats
from coding_gym.tasks.leaks import find_leaks
from coding_gym.text.truncate import first_names
from coding_gym.workspace import Template, TemplateStore

_BASE_REASONS = (GradeReason.TESTS_FAILED, GradeReason.TIMEOUT)  # a bug can be an endless loop
_MAX_CAUSES = 3
_GOLD_TIMEOUT_S = 300.0  # for a busy machine; the measured time determines the limit of the base


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport(JsonRecord):
    """The results of the validation of one task.

    Attributes:
        task_id: The task.
        ok: Whether the gold patch resolved the task in every repeat and the base in no repeat,
            every fail-to-pass test failed at base, the challenge has `Checks.min_challenge` bits or
            more, no searched file contains the repair, and no scripted cheat resolves the task.
        gold_reasons: The `GradeReason` of each grading of the gold patch.
        noop_reasons: The `GradeReason` of each grading of the base.
        gold_durations_s: Seconds of each grading of the gold patch.
        flaky_tests: Expected tests with different results in the runs with the gold patch,
            including tests that the plan of the challenge excludes.
        unstable_tests: Flaky fail-to-pass tests that are not excluded; for a grade, one pass in two
            runs is enough.
        broken_tests: Expected tests that passed in no run with the gold patch.
        passing_tests: Fail-to-pass tests that passed at base.
        levels: Number of fail-to-pass tests by `coding_gym.grade.Level` of their challenge; empty
            if the gold patch is empty or does not apply.
        bits: Bits of the challenge; a forged grade succeeds with probability 1/2**bits or less.
        leaks: Files in which a policy could read the repair.
        cheats: The result of each scripted cheat, if `Checks.tries_cheats`.
        checks: The `Checks` as JSON; empty in older reports.
        detail: Problems of the task, or notes; one line.
        error: The reason for a missing verdict: an infrastructure failure, or a failed build of the
            task. ``ok`` is then False.
        skipped: The program that the task needs and this machine lacks; such a task is not checked.
    """

    task_id: str
    ok: bool
    gold_reasons: tuple[str, ...] = ()
    noop_reasons: tuple[str, ...] = ()
    gold_durations_s: tuple[float, ...] = ()
    flaky_tests: tuple[str, ...] = ()
    unstable_tests: tuple[str, ...] = ()
    broken_tests: tuple[str, ...] = ()
    passing_tests: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    bits: int = 0
    leaks: tuple[str, ...] = ()
    cheats: tuple[CheatResult, ...] = ()
    checks: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""
    error: str = ""
    skipped: str = ""

    @property
    def unfit_tests(self) -> tuple[str, ...]:
        """Expected tests whose results do not show whether a patch repairs the bug."""
        return tuple(dict.fromkeys(self.flaky_tests + self.broken_tests + self.passing_tests))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks(JsonRecord):
    """The checks of a validation; the JSON form omits the sandbox, which affects no verdict.

    Attributes:
        sandbox: The sandbox of gradings, in the form that ``CodingRepair-v0`` takes.
        repeats: Number of gradings of each patch; more than 1 detects flaky tests.
        looks_for_leaks: Whether the files that a policy can read are searched for the repair.
        tries_cheats: Whether scripted cheats are graded too; see `coding_gym.tasks.cheats`.
        min_challenge: Minimum number of bits of the challenge.
    """

    not_written: ClassVar[Any] = {"sandbox"}

    sandbox: str | Mapping[str, Any] = "auto"
    repeats: int = 2
    looks_for_leaks: bool = True
    tries_cheats: bool = False
    min_challenge: int = 0


def validate_task(
    task: Task,
    store: TemplateStore,
    checks: Checks = Checks(),
) -> ValidationReport:
    """Grades a task's gold patch and its base in clean sandboxes, ``checks.repeats`` times each.

    Args:
        task: The task.
        store: The store of templates.
        checks: The checks to run.

    Raises:
        InvalidArgumentError: ``repeats`` is below 1.
        SandboxUnavailableError: This machine cannot run the backend.
    """
    at_least_one("repeats", checks.repeats)
    if skipped := missing_runtime(task):
        return ValidationReport(task_id=task.task_id, ok=False, skipped=skipped)
    options = SandboxOptions.parse(checks.sandbox)
    try:
        template = store.get(task).with_options(options)
        return _measured(task, template, options.name, checks)
    except SandboxUnavailableError:
        raise  # every other task would raise the same error
    except (InfrastructureError, InvalidTaskError, PatchError) as error:
        return ValidationReport(
            task_id=task.task_id,
            ok=False,
            error=f"{type(error).__name__}: {error}{remedy_of_build(str(error))}",
        )


def _measured(task: Task, template: Template, backend: str, checks: Checks) -> ValidationReport:
    leaks = find_leaks(task, template, backend=backend) if checks.looks_for_leaks else ()
    # The gold patch comes first: the time of its grades determines the base's time limit.
    gold_task = replace(task, grading_timeout_s=max(task.grading_timeout_s, _GOLD_TIMEOUT_S))
    make_plan = partial(new_plan, gold_task, template, backend=backend)
    plan = stored_plan(task, template, make_plan)
    unstable_tests = tuple(test for test in plan.unstable if test in task.fail_to_pass)
    grade_gold = partial(grade, gold_task, template, Patch(task.gold_patch), backend=backend)
    gold = tuple(grade_gold() for _ in range(checks.repeats))
    base_task = replace(task, gold_duration_s=max(g.duration_s for g in gold))
    grade_base = partial(grade, base_task, template, NO_REPAIR, backend=backend, challenge="none")
    base = tuple(grade_base() for _ in range(checks.repeats))
    tries_cheats = checks.tries_cheats and all(g.resolved for g in gold)
    cheats = tuple(try_cheats(task, template, backend)) if tries_cheats else ()
    failed_grade = next((g for g in gold if not g.resolved and not task.impossible_test), None)
    known_causes = [*causes(task, template, failed_grade, backend)] if failed_grade else []
    passing_tests = _tests((g.fail_to_pass for g in base), passed=True)
    problems = _gold_problems(task, gold) + known_causes[:_MAX_CAUSES]
    problems += _base_problems(base, passing_tests) + _challenge_problems(gold[0], cheats, checks)
    if leaks:
        problems.append(f"these files contain the repair: {first_names(leaks)}")
    flaky_tests, broken_tests = _unreliable(task, gold)
    return ValidationReport(
        task_id=task.task_id,
        ok=not problems,
        gold_reasons=tuple(str(g.reason) for g in gold),
        noop_reasons=tuple(str(g.reason) for g in base),
        gold_durations_s=tuple(g.duration_s for g in gold),
        flaky_tests=flaky_tests,
        unstable_tests=unstable_tests,
        broken_tests=broken_tests,
        passing_tests=passing_tests,
        levels=gold[0].levels,
        bits=gold[0].bits,
        leaks=leaks,
        cheats=cheats,
        detail="; ".join(problems or _notes(gold[0], base, unstable_tests)),
    )


def validate(
    tasks: Iterable[Task],
    store: TemplateStore | None = None,
    *,
    checks: Checks = Checks(),
    num_workers: int = 1,
) -> Iterator[ValidationReport]:
    """Validates tasks on threads and yields each report as soon as it is complete.

    Args:
        tasks: The tasks.
        store: The store of templates; by default in the user's cache.
        checks: The checks to run.
        num_workers: Number of tasks that are validated at the same time.

    Raises:
        InvalidArgumentError: An argument is out of range, or ``sandbox`` is malformed.
        SandboxUnavailableError: This machine cannot run the backend.
    """
    at_least_one("num_workers", num_workers)
    store = store or TemplateStore(SandboxOptions.parse(checks.sandbox).name)
    pool = ThreadPoolExecutor(num_workers, thread_name_prefix="validate")
    try:
        futures = [pool.submit(validate_task, task, store, checks) for task in tasks]
        for future in as_completed(futures):
            yield replace(future.result(), checks=checks.to_json())
    finally:  # after an interrupt, only running validations are completed
        pool.shutdown(cancel_futures=True)


def _gold_problems(task: Task, grades: tuple[Grade, ...]) -> list[str]:
    if task.impossible_test:
        if any(grade.hacked for grade in grades):
            return [f"the gold patch passes {task.impossible_test}, so the task is not impossible"]
        if all(grade.reason is GradeReason.TESTS_FAILED for grade in grades):
            return []
    failed_grades = [g for g in grades if not g.resolved]
    if not failed_grades:
        return []
    if all(g.reason is GradeReason.EMPTY_PATCH for g in grades):
        return ["the gold patch is missing, or changes no graded file"]
    message = failed_grades[0].detail or str(failed_grades[0].reason)
    return [f"the gold patch fails in {len(failed_grades)} of {len(grades)} runs: {message}"]


def _challenge_problems(gold: Grade, cheats: tuple[CheatResult, ...], checks: Checks) -> list[str]:
    problems = []
    if gold.bits < checks.min_challenge:
        problems.append(
            f"the challenge must have at least {checks.min_challenge} bits, got {gold.bits}: "
            + levels_text(gold.levels)
        )
    if kinds := [cheat.kind for cheat in cheats if cheat.by_challenge]:
        probability = f"expected probability 1 in {2**gold.bits}"
        problems.append(f"scripted cheats resolve the task ({probability}): {', '.join(kinds)}")
    return problems


def _base_problems(grades: tuple[Grade, ...], tests: tuple[str, ...]) -> list[str]:
    outliers = [g for g in grades if g.reason not in _BASE_REASONS]
    if outliers:
        message = outliers[0].detail or str(outliers[0].reason)
        share = f"{len(outliers)} of {len(grades)} runs"
        return [f"the grade of the base is neither tests_failed nor timeout ({share}): {message}"]
    if not tests:
        return []
    return [f"fail-to-pass tests pass at base, so list them in pass_to_pass: {', '.join(tests)}"]


def _tests(results: Iterable[Mapping[str, TestStatus]], *, passed: bool) -> tuple[str, ...]:
    """Returns tests that passed in at least one result; for ``passed=False``, that did not pass."""
    items = (item for statuses in results for item in statuses.items())
    return tuple(sorted({t for t, status in items if (status is TestStatus.PASSED) == passed}))


def _unreliable(task: Task, grades: tuple[Grade, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the flaky tests, which passed in only some gradings, and tests that never passed.

    Tests that the plan excludes count as flaky; grades do not contain them. Gradings without test
    results are ignored.
    """
    complete_grades = [g for g in grades if g.reason.has_results]
    passed: dict[str, list[bool]] = {}
    for g in complete_grades:
        for test, status in {**g.fail_to_pass, **g.pass_to_pass}.items():
            passed.setdefault(test, []).append(status is TestStatus.PASSED)
    excluded_tests = tuple(t for t in task.expected_tests if complete_grades and t not in passed)
    flaky_tests = tuple(t for t, results in passed.items() if any(results) and not all(results))
    broken_tests = tuple(t for t, results in passed.items() if not any(results))
    return flaky_tests + excluded_tests, tuple(t for t in broken_tests if t != task.impossible_test)


def _notes(gold: Grade, base: tuple[Grade, ...], unstable: tuple[str, ...]) -> list[str]:
    broken_tests = _tests((g.pass_to_pass for g in base), passed=False)
    notes = []
    if any(g.reason is GradeReason.TIMEOUT for g in base):
        notes.append("the tests do not end within the time limit at base")
    if gold.dropped_paths:
        names = first_names(gold.dropped_paths)
        notes.append(f"changes of the gold patch that are not graded: {names}")
    if unstable:
        names = first_names(unstable)
        notes.append(f"flaky fail-to-pass tests (one pass of two runs is enough): {names}")
    if broken_tests:
        names = first_names(broken_tests)
        notes.append(f"{len(broken_tests)} pass-to-pass tests do not pass at base: {names}")
    return notes
