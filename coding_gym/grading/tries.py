"""The runs that a grade takes: for the patch, against it, and of the gold where in doubt."""

import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import replace
from random import Random

from coding_gym.errors import GradingError, PatchError, SandboxError
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import unsound
from coding_gym.grading.canaries import Turned, contradict
from coding_gym.grading.retaking import retake
from coding_gym.grading.room import read_files, roomier
from coding_gym.grading.runners import get_runner
from coding_gym.grading.selection import Selection, select
from coding_gym.grading.verdict import Run, judge
from coding_gym.grading.warm_start import WarmStart
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task
from coding_gym.workspace import Template, apply_patch

_MAX_DOUBTS = 5

# Second tries, most of them of runs that were short of CPU time, do not compete with one another.
_second_try = threading.Lock()


def _free_second_try() -> None:
    global _second_try
    _second_try = threading.Lock()


# A fork may come while another thread holds the lock, which nobody would then release in the child.
os.register_at_fork(after_in_child=_free_second_try)


class Grading:
    """The grading of one patch.

    Args:
        task: The task.
        template: Its template.
        patch: The change to grade.
        backend: Name of the sandbox backend.
        timeout_s: Seconds for one run of the tests.
        warm: A sandbox that was started ahead, for the first run.
        is_gold: Whether nobody who wants a reward wrote the patch.
        rng: Source of all draws; no policy may foresee what canaries and turned tests look like.
    """

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
        rng: Random,
    ) -> None:
        self._task, self._template = task, template
        self._is_gold, self._rng = is_gold, rng
        self._spec = roomier(template.spec)
        self._patch, self._backend, self._timeout_s = patch, backend, timeout_s
        self._warm = warm
        self._runner = get_runner(task.runner)
        self._paths = self._runner.files(task)
        self._avoid: frozenset[str] = frozenset()
        self._unsound = unsound.recall(task, template)
        self._selection = Selection(patch, ())
        self._tests: dict[str, bytes] = {}
        self._opened: list[Sandbox] = []

    def verdict(self) -> Grade:
        """Returns the grade, but for its duration.

        Raises:
            GradingError, SandboxError: Our side failed.
        """
        try:
            self._patch = retake(self._patch, self._template, self._spec, backend=self._backend)
            if self._patch.is_empty:
                return _refuse(GradeReason.EMPTY_PATCH, "nothing was changed")
            run = self._sound_run()
        except PatchError as error:
            return _refuse(GradeReason.PATCH_NOT_APPLIED, str(error), self._selection)
        if run is None:
            said = "nothing but tests or their configuration was changed"
            return _refuse(GradeReason.EMPTY_PATCH, said, self._selection)
        return replace(judge(self._task, run), dropped_paths=self._selection.dropped_paths)

    def _sound_run(self) -> Run | None:
        """The run that decides, once nothing is left that the gold would be suspected for, too."""
        for _ in range(_MAX_DOUBTS):
            run = self._last_try()
            shown = self._shown_by_gold(run) if run and run.suspects else frozenset()
            if run is None or not shown:
                break
            self._unsound = self._unsound.with_shown(self._task, run, shown)
            unsound.remember(self._task, self._template, self._unsound)
        return run

    def _shown_by_gold(self, run: Run) -> frozenset[str]:
        """Those of a run's suspects that the gold patch gives rise to with the same test files."""
        if self._is_gold:
            return run.suspects
        gold, files = Patch(self._task.gold_patch), unsound.untouched(run, self._task)
        suspects = {name for name in run.suspects if name.partition("::")[0] in files}
        if gold.is_empty or not suspects:
            return frozenset()
        with open_sandbox(self._spec, backend=self._backend) as sandbox:
            self._apply_tests(sandbox)
            apply_patch(sandbox, self._select(sandbox, gold).patch)
            for path, data in files.items():
                sandbox.write_file(path, data)
            report = self._runner.run(sandbox, self._task, self._paths, timeout_s=self._timeout_s)
        other = Run.of(report, run.planted, is_edited=False, files=files)
        if not other.has_ended:
            return frozenset()
        passed = {name for name in run.turned if other.has_passed(name)}
        return frozenset(suspects & (other.suspects | passed))

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
        fit = [test for test in repaired if test not in self._unsound.to_turn]
        turned = contradict(self._tests, run.names(fit), self._rng)
        if not turned.tests:
            return run
        if self._is_gold:
            against = self._run(turned)
            return run.confirmed(run, against, repaired) if against else run
        with ThreadPoolExecutor(1) as pool:
            # The two draw from sources of their own: which run draws first depends on timing.
            future = pool.submit(self._run, turned, self._new_rng())
            try:
                plain = self._run(Turned(), self._new_rng())
            except BaseException:
                self._give_up()
                raise
            against = future.result()
        return run.confirmed(plain, against, repaired) if plain and against else run

    def _give_up(self) -> None:
        """Ends a run in another thread at once, rather than with its time."""
        for sandbox in self._opened:
            sandbox.close()

    def _new_rng(self) -> Random:
        """A source for one run, as hard to foresee as the one that seeds it."""
        return Random(self._rng.getrandbits(256))  # noqa: S311 — its seed is secret

    def _run(self, turned: Turned | None = None, rng: Random | None = None) -> Run | None:
        """One run in a sandbox of its own; None where there is nothing to run.

        Args:
            turned: Tests that were turned against themselves; None in the first run.
            rng: Source of this run's draws; None for that of the grading.
        """
        sandbox = self._warm.take() if self._warm else None
        if sandbox is not None:
            # It may have died while it waited; a failure of our side is tried once more.
            with suppress(SandboxError):
                return self._run_in(sandbox, turned, rng or self._rng)
        opened = open_sandbox(self._spec, backend=self._backend)
        return self._run_in(opened, turned, rng or self._rng)

    def _run_in(self, sandbox: Sandbox, turned: Turned | None, rng: Random) -> Run | None:
        self._opened.append(sandbox)
        with sandbox:
            if turned is None:
                self._selection = self._select(sandbox, self._patch)
            if self._selection.patch.is_empty:
                return None
            self._apply_tests(sandbox)
            apply_patch(sandbox, self._selection.patch)
            if turned is None:  # what the gold touches is the patch's, be it a file of tests
                self._tests = _texts(read_files(sandbox, self._paths))
            changed = turned.changed if turned else {}
            tests = {**self._tests, **changed}
            task = self._unsound.copied(self._task)
            canaries, planted = self._runner.plant(tests, task, rng, avoid=self._avoid)
            wanted = tests | planted
            files = {path: wanted[path] for path in {*changed, *planted}}
            for path, data in files.items():
                sandbox.write_file(path, data)
            report = self._runner.run(sandbox, self._task, self._paths, timeout_s=self._timeout_s)
            is_edited = read_files(sandbox, wanted) != wanted
        names = turned.tests if turned else ()
        return Run.of(report, canaries, is_edited=is_edited, files=files, turned=names)

    def _select(self, sandbox: Sandbox, patch: Patch) -> Selection:
        configs = read_files(sandbox, self._runner.root_files)
        texts = {name: data.decode("utf-8", "replace") for name, data in configs.items()}
        return select(
            self._task,
            patch,
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


def _texts(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Without programs that a build made, and that the task's command makes anew."""
    return {path: data for path, data in files.items() if b"\0" not in data}


def _refuse(reason: GradeReason, detail: str, selection: Selection | None = None) -> Grade:
    dropped = selection.dropped_paths if selection else ()
    return Grade(resolved=False, reason=reason, detail=detail, dropped_paths=dropped)
