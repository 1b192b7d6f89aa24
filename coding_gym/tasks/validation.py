"""Whether a task can be trusted: its gold patch resolves it, and its base does not, every time."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

from coding_gym.arguments import at_least_one
from coding_gym.errors import InvalidTaskError, MachineryError, SandboxUnavailableError
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import Task
from coding_gym.workspace import Template, TemplateStore

# Grading takes a shortcut for a patch that changes nothing; the base's tests have to be run.
_HARMLESS = Patch.between({}, {"coding_gym_validation.txt": "Nothing reads this file.\n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """What validation found out about one task.

    Attributes:
        task_id: The task.
        ok: Whether the gold patch resolved it in every repeat and the base in none, and every
            fail-to-pass test truly failed at base.
        gold_reasons: How each grading of the gold patch ended (values of `GradeReason`).
        noop_reasons: How each grading of the base ended.
        template_s: Seconds that the template took; near 0 where it was cached.
        gold_durations_s: Seconds of each grading of the gold patch.
        noop_durations_s: Seconds of each grading of the base.
        detail: What is wrong with the task, or worth knowing; one line.
        error: Why there is no verdict: the machinery failed, or the task could not be built. Then
            ``ok`` is False and says nothing about the patches.
    """

    task_id: str
    ok: bool
    gold_reasons: tuple[str, ...] = ()
    noop_reasons: tuple[str, ...] = ()
    template_s: float = 0.0
    gold_durations_s: tuple[float, ...] = ()
    noop_durations_s: tuple[float, ...] = ()
    detail: str = ""
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns the report as a JSON object."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


def validate_task(
    task: Task,
    store: TemplateStore,
    sandbox: str | Mapping[str, Any] = "auto",
    repeats: int = 2,
) -> ValidationReport:
    """Grades a task's gold patch and its base, each ``repeats`` times in clean sandboxes.

    Args:
        task: The task.
        store: Where its template is, or will be.
        sandbox: What to grade in, as ``CodingRepair-v0`` takes it.
        repeats: How often; above 1 finds tests that do not always end alike.

    Raises:
        InvalidArgumentError: ``repeats`` is below 1.
        SandboxUnavailableError: This machine cannot run the backend.
    """
    at_least_one("repeats", repeats)
    options = SandboxOptions.parse(sandbox)
    start = perf_counter()
    try:
        template = store.get(task)
        template = replace(template, spec=options.applied(template.spec))
        template_s = perf_counter() - start
        gold = _grades(task, template, Patch(task.gold_patch), options.name, repeats)
        slowest_s = max(one.duration_s for one in gold)
        timed = replace(task, gold_duration_s=slowest_s)
        noop = _grades(timed, template, _HARMLESS, options.name, repeats)
    except SandboxUnavailableError:
        raise  # true of every task on this machine
    except (MachineryError, InvalidTaskError) as error:
        return ValidationReport(
            task_id=task.task_id, ok=False, error=f"{type(error).__name__}: {error}"
        )
    problems = _gold_problems(gold) + _noop_problems(noop)
    return ValidationReport(
        task_id=task.task_id,
        ok=not problems,
        gold_reasons=tuple(str(g.reason) for g in gold),
        noop_reasons=tuple(str(g.reason) for g in noop),
        template_s=template_s,
        gold_durations_s=tuple(g.duration_s for g in gold),
        noop_durations_s=tuple(g.duration_s for g in noop),
        detail="; ".join(problems or _notes(noop)),
    )


def validate(
    tasks: Iterable[Task],
    store: TemplateStore | None = None,
    *,
    sandbox: str | Mapping[str, Any] = "auto",
    repeats: int = 2,
    num_workers: int = 1,
    on_result: Callable[[ValidationReport], None] | None = None,
) -> tuple[ValidationReport, ...]:
    """Validates tasks on threads and returns their reports in the order of the tasks.

    Args:
        tasks: The tasks.
        store: Where templates are kept; the user's cache by default.
        sandbox: What to grade in, as ``CodingRepair-v0`` takes it.
        repeats: How often each patch is graded.
        num_workers: Tasks in progress at one time.
        on_result: Called in the calling thread with each report as soon as it is there.

    Raises:
        InvalidArgumentError: ``repeats`` or ``num_workers`` is below 1, or ``sandbox`` cannot be.
        SandboxUnavailableError: This machine cannot run the backend.
    """
    at_least_one("num_workers", num_workers)
    store = store or TemplateStore(SandboxOptions.parse(sandbox).name)
    pool = ThreadPoolExecutor(num_workers, thread_name_prefix="validate")
    try:
        futures = [pool.submit(validate_task, task, store, sandbox, repeats) for task in tasks]
        for future in as_completed(futures):
            report = future.result()
            if on_result is not None:
                on_result(report)
        return tuple(future.result() for future in futures)
    finally:  # after an interrupt only the tasks in progress are waited for
        pool.shutdown(cancel_futures=True)


def _grades(
    task: Task, template: Template, patch: Patch, backend: str, repeats: int
) -> tuple[Grade, ...]:
    return tuple(grade(task, template, patch, backend=backend) for _ in range(repeats))


def _gold_problems(grades: tuple[Grade, ...]) -> list[str]:
    failed = [g for g in grades if not g.resolved]
    if not failed:
        return []
    if all(g.reason is GradeReason.EMPTY_PATCH for g in grades):
        return ["there is no gold patch, or it changes nothing that is graded"]
    first = failed[0]
    said = first.detail or str(first.reason)
    return [f"the gold patch does not resolve ({len(failed)} of {len(grades)} runs): {said}"]


def _noop_problems(grades: tuple[Grade, ...]) -> list[str]:
    odd = [g for g in grades if g.reason is not GradeReason.TESTS_FAILED]
    if odd:
        said = odd[0].detail or str(odd[0].reason)
        return [f"the base does not just fail its tests ({len(odd)} of {len(grades)} runs): {said}"]
    passing = {
        test
        for one in grades
        for test, status in one.fail_to_pass.items()
        if status is TestStatus.PASSED
    }
    return [f"fail-to-pass tests pass at base: {', '.join(sorted(passing))}"] if passing else []


def _notes(grades: tuple[Grade, ...]) -> list[str]:
    broken = {
        test
        for one in grades
        for test, status in one.pass_to_pass.items()
        if status is not TestStatus.PASSED
    }
    return [f"{len(broken)} pass-to-pass tests do not pass at base"] if broken else []
