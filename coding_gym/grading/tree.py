"""The base tree of a task: selects the graded part of a patch, and runs the hidden tests on it."""

import contextlib
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from coding_gym.errors import GradingError, PatchError, SandboxError
from coding_gym.grading.report import TestRun
from coding_gym.grading.runners import get_runner
from coding_gym.grading.selection import Selection, select_graded
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.task import Task
from coding_gym.workspace import Template, apply_patch, normalize
from coding_gym.workspace.pytest_layer import preloads

Rewrite = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
_MAX_LOAD = 8.0  # factor by which a busy machine raises a time limit
_MIN_DISK_BYTES = 1 << 30
_MIN_PROCESSES = 512
_MIN_MEMORY_BYTES = 1 << 30
_MIN_OPEN_FILES = 1280  # the test process writes its report to a descriptor with a high number


class TestTree:
    """The base tree of a task, in which a patch is graded.

    Args:
        task: The task.
        template: The template of the task.
        backend: Name of the sandbox backend.
        timeout_s: Time limit of a test run in seconds; a busy machine multiplies it by up to 8.

    Attributes:
        spec: The settings of the sandboxes in which tests run.
        runner: The runner of the tests.
        paths: The test files that ids of expected tests name.
        is_negatable: Whether tests can be negated; true only for Python's test runners.
    """

    __test__ = False  # pytest collects classes called Test*

    def __init__(self, task: Task, template: Template, backend: str, timeout_s: float) -> None:
        self._task, self._template, self._backend = task, template, backend
        self._timeout_s = timeout_s
        self.spec = spec_for_tests(task, template, preloads_pytest=task.runner == "pytest")
        self.runner = get_runner(task.runner)
        self.paths = self.runner.files(task)
        self.is_negatable = self.runner.negates(task)

    def select_graded(self, patch: Patch, *, is_challenged: bool = True) -> Selection:
        """Selects the graded part of a patch, from the diff that git makes in a clean sandbox.

        Args:
            patch: The patch.
            is_challenged: Whether the tests will be challenged, if they can be negated.

        Raises:
            PatchError: The patch cannot be read, does not apply, or is too large.
            SandboxError: The sandbox failed.
        """
        if patch.is_empty:
            return Selection()
        with open_sandbox(self.spec, backend=self._backend) as sandbox:
            change = normalize(sandbox, self._template, patch)
            tests = read_files(sandbox, self.paths) if self.is_negatable else {}
        patterns = self.runner.patterns(self._task)
        return select_graded(
            self._task,
            change,
            test_files=self.paths,
            patterns=patterns,
            texts={path: data.decode("utf-8", "replace") for path, data in tests.items()},
            is_challenged=is_challenged and self.is_negatable,
        )

    def run(
        self,
        patch: Patch,
        rewrite: Rewrite | None = None,
        *,
        only: Collection[str] = (),
        num_checks: int = 0,
        is_plain: bool = False,
        timeout_s: float = math.inf,
    ) -> TestRun:
        """Runs the tests with a patch in a new sandbox.

        Code of the patch can run before the tests and prevent their start. So after an
        infrastructure failure the tests run at base and, if this control run also fails to start,
        with the gold patch. If a control run starts, the tests run with the patch again. If this
        run fails to start too, the patch is the cause: the run has a `TestRun.start_error`.

        Args:
            patch: The graded change.
            rewrite: A function that returns the new contents of test files, from the contents of
                all test files; by default the files stay as they are.
            only: Ids of the tests to run, if the runner can select tests; all by default.
            num_checks: The number of checks that record their outcomes; 0 for unedited files.
            is_plain: Whether pytest runs with ``--assert=plain``: without its rewriting of
                assertions, which takes a quarter of the time of a short file.
            timeout_s: Upper bound of the time limit in seconds; a busy machine does not raise it.

        Raises:
            PatchError: The patch does not apply to the tree with the hidden tests.
            GradingError, SandboxError: The infrastructure failed in this run and in control runs.
        """
        attempt = partial(
            self._attempt,
            rewrite=rewrite,
            only=only,
            num_checks=num_checks,
            is_plain=is_plain,
            timeout_s=timeout_s,
        )
        run = attempt(patch)
        if run.start_error is None:
            return run
        controls = (control for control in self._controls() if control != patch)
        if not any(_starts(attempt, control) for control in controls):
            raise run.start_error
        return attempt(patch)

    def _controls(self) -> Iterator[Patch]:
        """Yields the empty patch and the graded part of the gold patch."""
        yield Patch()
        with contextlib.suppress(PatchError):
            yield self.select_graded(Patch(self._task.gold_patch)).patch

    def _attempt(self, patch: Patch, *, is_plain: bool, **options: Any) -> TestRun:
        """Runs the tests in a new sandbox.

        An infrastructure failure is returned as `TestRun.start_error`. A failure to open the
        sandbox is raised, because no patch can cause it.
        """
        spec = self.spec
        if is_plain:
            addopts = f"{spec.env.get('PYTEST_ADDOPTS', '')} --assert=plain"
            spec = replace(spec, env={**spec.env, "PYTEST_ADDOPTS": addopts})
        with open_sandbox(spec, backend=self._backend) as sandbox:
            try:
                return self._run_in(sandbox, patch, **options)
            except (GradingError, SandboxError) as error:
                return TestRun(tail=str(error), start_error=error)

    def _run_in(
        self,
        sandbox: Sandbox,
        patch: Patch,
        *,
        rewrite: Rewrite | None,
        only: Collection[str],
        num_checks: int,
        timeout_s: float,
    ) -> TestRun:
        try:
            apply_patch(sandbox, Patch(self._task.test_patch))
        except PatchError as error:
            raise GradingError(
                f"test_patch of {self._task.task_id} does not apply to its base: {error}"
            ) from error
        apply_patch(sandbox, patch)
        contents = read_files(sandbox, self.paths)
        # A compiled program is not compared after the run, because the run can rebuild it.
        files = {path: data for path, data in contents.items() if b"\0" not in data}
        rewritten = rewrite(files) if rewrite else {}
        _write_files(sandbox, rewritten)
        run = self.runner.run(
            sandbox,
            self._task,
            self.paths,
            timeout_s=min(self._timeout_s * load_factor(), timeout_s),
            only=only,
            num_checks=num_checks,
        )
        run.files = files
        if not run.is_lost:
            expected = {**files, **rewritten}
            run.is_edited = any(_differs(sandbox, path, data) for path, data in expected.items())
        return run


def _starts(attempt: Callable[[Patch], TestRun], patch: Patch) -> bool:
    """Returns whether the tests start with a patch."""
    try:
        return attempt(patch).start_error is None
    except PatchError:
        return False


def load_factor() -> float:
    """Returns the factor by which the load of the whole machine raises a time limit, 1 to 8."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(max(load, 1.0), _MAX_LOAD)


def spec_for_tests(task: Task, template: Template, *, preloads_pytest: bool = True) -> SandboxSpec:
    """Returns the spec of sandboxes for test runs, with enough resources and a fresh shell.

    Args:
        task: The task.
        template: The template of the task.
        preloads_pytest: Whether pytest is imported in advance, unless the task installs pytest.
    """
    spec = template.spec
    limits = replace(
        spec.limits,
        disk_bytes=max(spec.limits.disk_bytes, _MIN_DISK_BYTES),
        num_processes=max(spec.limits.num_processes, _MIN_PROCESSES),
        memory_bytes=max(spec.limits.memory_bytes, _MIN_MEMORY_BYTES),
        num_open_files=max(spec.limits.num_open_files, _MIN_OPEN_FILES),
    )
    preload = preloads(spec.env, has_own_pytest=task.has_own_pytest) if preloads_pytest else ()
    return replace(spec, limits=limits, shell="fresh", preload=preload)


def read_files(sandbox: Sandbox, paths: Iterable[str]) -> dict[str, bytes]:
    """Returns the content of the files that exist, by path."""
    contents = {}
    for path in paths:
        with contextlib.suppress(OSError):
            contents[path] = sandbox.read_file(path)
    return contents


def _write_files(sandbox: Sandbox, contents: Mapping[str, bytes]) -> None:
    for path, data in contents.items():
        try:
            sandbox.write_file(path, data)
        except OSError as error:  # the files of a patch can fill the disk
            raise GradingError(f"the test file {path} cannot be written: {error}") from error


def _differs(sandbox: Sandbox, path: str, data: bytes) -> bool:
    """Returns whether a file is missing, or its content differs from ``data``."""
    try:
        return sandbox.read_file(path, max_bytes=len(data)) != data
    except OSError:  # the file is larger, or missing
        return True
