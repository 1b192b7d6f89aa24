"""The verdict on a patch: hidden tests in a second, clean sandbox."""

import os
import secrets
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import replace
from time import perf_counter

from coding_gym.arguments import MAX_SECONDS
from coding_gym.errors import (
    GradingError,
    InvalidArgumentError,
    PatchError,
    SandboxError,
    SandboxUnavailableError,
    UnknownNameError,
)
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading.canaries import Turned, contradict
from coding_gym.grading.retaking import retake
from coding_gym.grading.room import roomier
from coding_gym.grading.runners import get_runner
from coding_gym.grading.selection import Selection, select
from coding_gym.grading.verdict import Run, judge
from coding_gym.grading.warm_start import WarmStart
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task
from coding_gym.workspace import Template, apply_patch

_GOLD_FACTOR = 10.0

# No policy foresees what canaries and turned tests look like.
_rng = secrets.SystemRandom()
# Second tries, most of them of runs that were short of CPU time, do not compete with one another.
_second_try = threading.Lock()


def _free_second_try() -> None:
    global _second_try
    _second_try = threading.Lock()


# A fork may come while another thread holds the lock, which nobody would then release in the child.
os.register_at_fork(after_in_child=_free_second_try)


def grade(
    task: Task,
    template: Template,
    patch: Patch,
    *,
    backend: str = "auto",
    warm: WarmStart | None = None,
    is_gold: bool = False,
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
    it spared, and what fails in the other was not repaired. ``docs/grading.md`` says what remains.

    Args:
        task: The task.
        template: Its template.
        patch: The change to grade, against the base tree.
        backend: Name of the sandbox backend.
        warm: What `start_ahead` gave for this task, template and backend; closed in any case. It
            makes the first run of the tests start sooner, and changes nothing else.
        is_gold: Whether nobody who wants a reward wrote the patch: it cannot know which run is the
            first, so one run more is enough.

    Raises:
        GradingError: The machinery failed, or the task cannot be graded.
        SandboxUnavailableError: This machine cannot run the backend.
    """
    start = perf_counter()
    _check(task)
    timeout_s = max(task.grading_timeout_s, _GOLD_FACTOR * task.gold_duration_s)
    timeout_s = min(timeout_s, MAX_SECONDS / 2)  # the sandbox waits a little longer than that
    try:
        grading = _Grading(task, template, patch, backend, timeout_s, warm, is_gold=is_gold)
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


class _Grading:
    """The grading of one patch, in up to two tries."""

    def __init__(
        self,
        task: Task,
        template: Template,
        patch: Patch,
        backend: str,
        timeout_s: float,
        warm: WarmStart | None,
        *,
        is_gold: bool,
    ) -> None:
        self._task, self._template = task, template
        self._is_gold = is_gold
        self._spec = roomier(template.spec)
        self._patch, self._backend, self._timeout_s = patch, backend, timeout_s
        self._warm = warm
        self._runner = get_runner(task.runner)
        self._paths = self._runner.files(task)
        self._avoid: frozenset[str] = frozenset()
        self._selection = Selection(patch, ())
        self._tests: dict[str, bytes] = {}
        self._opened: list[Sandbox] = []

    def verdict(self) -> Grade:
        try:
            self._patch = retake(self._patch, self._template, self._spec, backend=self._backend)
            if self._patch.is_empty:
                return _refuse(GradeReason.EMPTY_PATCH, "nothing was changed")
            run = self._last_try()
        except PatchError as error:
            return _refuse(GradeReason.PATCH_NOT_APPLIED, str(error), self._selection)
        if run is None:
            said = "nothing but tests or their configuration was changed"
            return _refuse(GradeReason.EMPTY_PATCH, said, self._selection)
        return replace(judge(self._task, run), dropped_paths=self._selection.dropped_paths)

    def _last_try(self) -> Run | None:
        """The run that decides; None where nothing of the patch is graded."""
        run = None
        for gate in (nullcontext(), _second_try):
            with gate:
                run = self._confirmed_run()
            if run is None or run.is_final:
                break
            self._avoid |= {canary.original_id for canary in run.canaries.lost}
        return run

    def _confirmed_run(self) -> Run | None:
        """A run of the tests and, where they speak for the patch, two that it cannot tell apart.

        In one of them the tests that the bug breaks and that passed are turned, so that they ask
        for what is not so; the other is as the first. Both take place at the same time, for what a
        clock says would tell a second run from a first. They are left out where none of these tests
        passed, or none can be turned round.
        """
        run = self._run()
        repaired = run.repaired(self._task) if run else ()
        if run is None or not repaired:
            return run
        turned = contradict(self._tests, run.names(repaired), _rng)
        if not turned.tests:
            return run
        if self._is_gold:
            against = self._run(turned)
            return run.confirmed(run, against, repaired) if against else run
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(self._run, turned)
            try:
                plain = self._run(Turned())
            except BaseException:
                self._give_up()
                raise
            against = future.result()
        return run.confirmed(plain, against, repaired) if plain and against else run

    def _give_up(self) -> None:
        """Ends a run in another thread at once, rather than with its time."""
        for sandbox in self._opened:
            sandbox.close()

    def _run(self, turned: Turned | None = None) -> Run | None:
        """One run in a sandbox of its own; None where there is nothing to run.

        Args:
            turned: Tests that were turned against themselves; None in the first run.
        """
        sandbox = self._warm.take() if self._warm else None
        if sandbox is not None:
            # It may have died while it waited; a failure of our side is tried once more.
            with suppress(SandboxError):
                return self._run_in(sandbox, turned)
        return self._run_in(open_sandbox(self._spec, backend=self._backend), turned)

    def _run_in(self, sandbox: Sandbox, turned: Turned | None) -> Run | None:
        self._opened.append(sandbox)
        with sandbox:
            if turned is None:
                self._selection = self._select(sandbox)
            if self._selection.patch.is_empty:
                return None
            self._apply_tests(sandbox)
            apply_patch(sandbox, self._selection.patch)
            if turned is None:  # what the gold touches is the patch's, be it a file of tests
                self._tests = _texts(_read_files(sandbox, self._paths))
            changed = turned.changed if turned else {}
            tests = {**self._tests, **changed}
            canaries, planted = self._runner.plant(tests, self._task, _rng, avoid=self._avoid)
            wanted = tests | planted
            for path in {*changed, *planted}:
                sandbox.write_file(path, wanted[path])
            report = self._runner.run(sandbox, self._task, self._paths, timeout_s=self._timeout_s)
            is_edited = _read_files(sandbox, wanted) != wanted
        names = turned.tests if turned else ()
        return Run.of(report, canaries, is_edited=is_edited, turned=names)

    def _select(self, sandbox: Sandbox) -> Selection:
        configs = _read_files(sandbox, self._runner.root_files)
        texts = {name: data.decode("utf-8", "replace") for name, data in configs.items()}
        return select(
            self._task,
            self._patch,
            test_files=self._paths,
            patterns=self._runner.patterns(texts),
            config_names=self._runner.config_names,
        )

    def _apply_tests(self, sandbox: Sandbox) -> None:
        tests = Patch(self._task.test_patch)
        if tests.is_empty:
            return
        try:
            apply_patch(sandbox, tests)
        except PatchError as error:
            raise GradingError(
                f"test_patch of {self._task.task_id} does not apply to its base: {error}"
            ) from error


def _check(task: Task) -> None:
    if not task.expected_tests:
        raise GradingError(f"task {task.task_id} names no test that must pass")
    try:
        problem = get_runner(task.runner).problem(task)
    except UnknownNameError as error:
        problem = str(error)
    if problem:
        raise GradingError(f"task {task.task_id}: {problem}")


def _read_files(sandbox: Sandbox, paths: Iterable[str]) -> dict[str, bytes]:
    """Content by path of those files that are there."""
    found = {}
    for path in paths:
        try:
            found[path] = sandbox.read_file(path)
        except OSError:
            continue
    return found


def _texts(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Without programs that a build made, and that the task's command makes anew."""
    return {path: data for path, data in files.items() if b"\0" not in data}


def _refuse(reason: GradeReason, detail: str, selection: Selection | None = None) -> Grade:
    dropped = selection.dropped_paths if selection else ()
    return Grade(resolved=False, reason=reason, detail=detail, dropped_paths=dropped)
