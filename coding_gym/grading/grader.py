"""The verdict on a patch: hidden tests in a second, clean sandbox."""

import os
import secrets
import threading
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from time import perf_counter

from coding_gym.arguments import MAX_SECONDS
from coding_gym.errors import GradingError, PatchError, SandboxError, SandboxUnavailableError
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading.canaries import plant
from coding_gym.grading.retaking import retake
from coding_gym.grading.selection import CONFIG_FILES, Selection, collection_patterns, select
from coding_gym.grading.supervision import run_tests
from coding_gym.grading.verdict import Run, judge
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.options import with_fresh_shells
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.task import Task
from coding_gym.workspace import Template, apply_patch

_MIN_DISK_BYTES = 1 << 30
_MIN_PROCESSES = 512
_MIN_MEMORY_BYTES = 1 << 30
_MIN_OPEN_FILES = 1024  # the reports of tests go through one with a high number
_GOLD_FACTOR = 10.0

# Second tries, most of them of runs that were short of CPU time, do not compete with one another.
_second_try = threading.Lock()


def _free_second_try() -> None:
    global _second_try
    _second_try = threading.Lock()


# A fork may come while another thread holds the lock, which nobody would then release in the child.
os.register_at_fork(after_in_child=_free_second_try)


def grade(task: Task, template: Template, patch: Patch, *, backend: str = "auto") -> Grade:
    """Returns what a patch is worth.

    Every expected test must be reported as passed, by name, in a fresh sandbox that holds the base
    tree, the hidden tests and the patch. Changes of tests and of their configuration are left out
    of the patch and reported. A patch that changes nothing, or nothing else, is not run. What
    counts is what git makes of the text, without new files that the base's ``.gitignore`` names.

    A run may take the task's ``grading_timeout_s``, or ten times its ``gold_duration_s`` where that
    is more. One that takes longer is repeated only if it hardly got any CPU time.

    Code under test shares a process with the tests and can forge what that process reports. Forgery
    that makes failures pass is found out by canaries, and so are objects that claim to equal all
    others; forgery that reads the tests, tells canaries from other tests and spares them is not.

    Args:
        task: The task.
        template: Its template.
        patch: The change to grade, against the base tree.
        backend: Name of the sandbox backend.

    Raises:
        GradingError: The machinery failed, or the task cannot be graded.
        SandboxUnavailableError: This machine cannot run the backend.
    """
    start = perf_counter()
    _check(task)
    timeout_s = max(task.grading_timeout_s, _GOLD_FACTOR * task.gold_duration_s)
    timeout_s = min(timeout_s, MAX_SECONDS / 2)  # the sandbox waits a little longer than that
    try:
        verdict = _Grading(task, template, patch, backend, timeout_s).verdict()
    except SandboxUnavailableError:
        raise
    except SandboxError as error:
        raise GradingError(f"the grading sandbox of {task.task_id} failed: {error}") from error
    return replace(verdict, duration_s=perf_counter() - start)


class _Grading:
    """The grading of one patch, in up to two tries."""

    def __init__(
        self, task: Task, template: Template, patch: Patch, backend: str, timeout_s: float
    ) -> None:
        self._task, self._template = task, template
        self._spec = _roomier(template.spec)
        self._patch, self._backend, self._timeout_s = patch, backend, timeout_s
        self._paths = sorted({test.partition("::")[0] for test in task.expected_tests})
        self._avoid: frozenset[str] = frozenset()

    def verdict(self) -> Grade:
        try:
            self._patch = retake(self._patch, self._template, self._spec, backend=self._backend)
        except PatchError as error:
            return _refuse(GradeReason.PATCH_NOT_APPLIED, str(error))
        if self._patch.is_empty:
            return _refuse(GradeReason.EMPTY_PATCH, "nothing was changed")
        for gate in (nullcontext(), _second_try):
            with gate, open_sandbox(self._spec, backend=self._backend) as sandbox:
                selection = Selection(self._patch, ())
                try:
                    selection = self._select(sandbox)
                    if selection.patch.is_empty:
                        said = "nothing but tests or their configuration was changed"
                        return _refuse(GradeReason.EMPTY_PATCH, said, selection)
                    self._apply_tests(sandbox)
                    originals = self._read_tests(sandbox)
                    apply_patch(sandbox, selection.patch)
                except PatchError as error:
                    return _refuse(GradeReason.PATCH_NOT_APPLIED, str(error), selection)
                run = self._run(sandbox, originals)
            if run.is_final:
                break
            self._avoid |= {canary.original_id for canary in run.canaries.lost}
        return replace(judge(self._task, run), dropped_paths=selection.dropped_paths)

    def _select(self, sandbox: Sandbox) -> Selection:
        configs = _read_files(sandbox, CONFIG_FILES)
        texts = {name: data.decode("utf-8", "replace") for name, data in configs.items()}
        return select(self._task, self._patch, collection_patterns(texts))

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

    def _read_tests(self, sandbox: Sandbox) -> dict[str, bytes]:
        return _read_files(sandbox, self._paths)

    def _run(self, sandbox: Sandbox, tests: dict[str, bytes]) -> Run:
        canaries, changed = plant(
            tests,
            self._task.fail_to_pass,
            self._task.pass_to_pass,
            secrets.SystemRandom(),
            avoid=self._avoid,
        )
        for path, data in changed.items():
            sandbox.write_file(path, data)
        report = run_tests(
            sandbox,
            self._paths,
            timeout_s=self._timeout_s,
            has_own_pytest=self._task.has_own_pytest,
        )
        wanted = tests | changed
        is_edited = _read_files(sandbox, wanted) != wanted
        return Run.of(report, canaries, is_edited=is_edited)


def _check(task: Task) -> None:
    if not task.expected_tests:
        raise GradingError(f"task {task.task_id} names no test that must pass")
    odd = [test for test in task.expected_tests if "::" not in test]
    if odd:
        raise GradingError(
            f"task {task.task_id}: expected test {odd[0]!r} is not a pytest node id (FILE::TEST)"
        )


def _roomier(spec: SandboxSpec) -> SandboxSpec:
    """Tests may need more than the repair did, and no shell that outlives its command."""
    limits = replace(
        spec.limits,
        disk_bytes=max(spec.limits.disk_bytes, _MIN_DISK_BYTES),
        num_processes=max(spec.limits.num_processes, _MIN_PROCESSES),
        memory_bytes=max(spec.limits.memory_bytes, _MIN_MEMORY_BYTES),
        num_open_files=max(spec.limits.num_open_files, _MIN_OPEN_FILES),
    )
    return with_fresh_shells(replace(spec, limits=limits))


def _read_files(sandbox: Sandbox, paths: Iterable[str]) -> dict[str, bytes]:
    """Content by path of those files that are there."""
    found = {}
    for path in paths:
        try:
            found[path] = sandbox.read_file(path)
        except OSError:
            continue
    return found


def _refuse(reason: GradeReason, detail: str, selection: Selection | None = None) -> Grade:
    dropped = selection.dropped_paths if selection else ()
    return Grade(resolved=False, reason=reason, detail=detail, dropped_paths=dropped)
