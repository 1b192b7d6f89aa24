"""The verdict on a patch: hidden tests in a second, clean sandbox."""

from dataclasses import replace
from random import Random, SystemRandom
from time import perf_counter

from coding_gym.arguments import MAX_SECONDS
from coding_gym.errors import (
    GradingError,
    InvalidArgumentError,
    SandboxError,
    SandboxUnavailableError,
    UnknownNameError,
)
from coding_gym.grade import Grade
from coding_gym.grading.runners import get_runner
from coding_gym.grading.tries import Grading
from coding_gym.grading.warm_start import WarmStart
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.workspace import Template

_GOLD_FACTOR = 10.0


def grade(
    task: Task,
    template: Template,
    patch: Patch,
    *,
    backend: str = "auto",
    warm: WarmStart | None = None,
    is_gold: bool = False,
    rng: Random | None = None,
) -> Grade:
    """Returns what a patch is worth.

    Every expected test must be reported as passed, by name, in a fresh sandbox that holds the base
    tree, the hidden tests and the patch. Changes of tests and of their configuration are left out
    of the patch and reported. A patch that changes nothing, or nothing else, is not run. What
    counts is what git makes of the text, without new files that the base's ``.gitignore`` names.

    A run may take the task's ``grading_timeout_s``, or ten times its ``gold_duration_s`` where that
    is more. One that takes longer is repeated only if it hardly got any CPU time.

    Code under test shares a process with the tests and can forge what that process reports. Forgery
    that makes failures pass is found out by canaries, and so are objects that claim to equal all
    others. A patch that seems to repair anything runs twice more, at the same time, in one of the
    two with the tests of the bug turned against themselves: what passes there was forged, whatever
    it spared, and what fails in the other was not repaired. Where the gold patch with the same test
    files would be suspected too, the tests are at fault, and the patch is graded without that
    evidence. ``docs/grading.md`` says what remains.

    Args:
        task: The task.
        template: Its template.
        patch: The change to grade, against the base tree.
        backend: Name of the sandbox backend.
        warm: What `start_ahead` gave for this task, template and backend; closed in any case. It
            makes the first run of the tests start sooner, and changes nothing else.
        is_gold: Whether nobody who wants a reward wrote the patch: it cannot know which run is the
            first, so one run more is enough.
        rng: Source of the grader's draws: which tests are copied or negated, and the values that
            they expect. The default is a new `random.SystemRandom`, which code under test cannot
            predict. A seeded `random.Random` makes a test of the grader repeatable; never use one
            where a policy is rewarded.

    Raises:
        GradingError: The machinery failed, or the task cannot be graded.
        SandboxUnavailableError: This machine cannot run the backend.
    """
    start = perf_counter()
    _check(task)
    timeout_s = max(task.grading_timeout_s, _GOLD_FACTOR * task.gold_duration_s)
    timeout_s = min(timeout_s, MAX_SECONDS / 2)  # the sandbox waits a little longer than that
    try:
        grading = Grading(
            task,
            template,
            patch,
            backend,
            timeout_s,
            warm,
            is_gold=is_gold,
            rng=rng or SystemRandom(),
        )
        verdict = grading.verdict()
    except SandboxUnavailableError:
        raise
    except SandboxError as error:
        raise GradingError(f"the grading sandbox of {task.task_id} failed: {error}") from error
    except InvalidArgumentError as error:  # a text of the task that no sandbox can take
        raise GradingError(f"task {task.task_id} cannot be graded: {error}") from error
    finally:
        if warm is not None:
            warm.close()
    return replace(verdict, duration_s=perf_counter() - start)


def _check(task: Task) -> None:
    if not task.expected_tests:
        raise GradingError(f"task {task.task_id} names no test that must pass")
    try:
        problem = get_runner(task.runner).problem(task)
    except UnknownNameError as error:
        problem = str(error)
    if problem:
        raise GradingError(f"task {task.task_id}: {problem}")
