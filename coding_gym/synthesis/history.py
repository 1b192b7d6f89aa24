"""Makes tasks from bug-fix commits, whose tests fail before the commit and pass after it."""

import logging
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from coding_gym.addresses import find_repository
from coding_gym.arguments import at_least_one
from coding_gym.errors import (
    InfrastructureError,
    InvalidArgumentError,
    InvalidTaskError,
    PatchError,
    SandboxUnavailableError,
)
from coding_gym.grading.supervision import ForkedRun
from coding_gym.patch import Patch
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.synthesis.commits import Commits, FixCommit
from coding_gym.synthesis.confirming import confirm
from coding_gym.synthesis.progress import Progress
from coding_gym.synthesis.project import is_test
from coding_gym.synthesis.statement import find_symptoms, write_statement
from coding_gym.synthesis.suite import SuiteRun, SuiteSandbox
from coding_gym.task import GitTree, Task
from coding_gym.workspace import TemplateStore

_log = logging.getLogger(__name__)
_CPU_S = 120.0


def tasks_from_history(
    repository: str | Path,
    n: int,
    *,
    name: str = "",
    install_commands: tuple[str, ...] = (),
    interpreter: str = "base",
    sandbox: str | Mapping[str, Any] = "auto",
    store: TemplateStore | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> tuple[Task, ...]:
    """Makes tasks from commits that change code and tests, the newest first.

    The base is the parent of the commit; the tests that the commit changes are hidden. A task needs
    a test that fails without the commit's code and passes with it in every run; the grader must
    confirm the task. Commit messages stay hidden, because they describe the repair.

    Args:
        repository: A git repository on this machine.
        n: Maximum number of tasks.
        name: Name of the project in task ids; by default the name of its folder.
        install_commands: Commands that build the environment, again for every commit.
        interpreter: See `coding_gym.task.Task`.
        sandbox: The sandbox of the tests, in the form that ``CodingRepair-v0`` takes.
        store: The store of templates; by default in the user's cache.
        on_progress: Called at the start and after every commit that changes code and tests, always
            with the same object.

    Raises:
        InvalidArgumentError: The repository does not exist.
        SandboxUnavailableError: This machine cannot run the backend.
    """
    at_least_one("n", n)
    path = find_repository(repository)
    if path is None:
        raise InvalidArgumentError(
            f"repo must be a git repository to make tasks from its history, got {str(repository)!r}"
        )
    options = SandboxOptions.parse(sandbox)
    store = store or TemplateStore(options.name)
    progress = Progress()
    tasks = progress.tasks
    with tempfile.TemporaryDirectory() as scratch:
        commits = Commits(path, Path(scratch))
        progress.num_commits = commits.count()
        on_progress(progress)
        for fix in commits.fixes():
            progress.num_sites += 1
            bare = _bare_task(fix, path, name or path.name, install_commands, interpreter)
            try:
                task = _with_tests(bare, fix, store, options)
            except SandboxUnavailableError:
                raise  # the error would be the same for every commit
            except (InfrastructureError, InvalidTaskError, PatchError) as error:
                progress.num_failed += 1
                progress.failure = f"{bare.task_id} is skipped: {error}"
                _log.info("%s", progress.failure)
                task = None
            progress.num_tried += 1
            if task is not None:
                problem = confirm(task, store, sandbox, set())
                progress.num_found += 1
                progress.num_invalid += bool(problem)
                tasks += [] if problem else [task]
            on_progress(progress)
            if len(tasks) >= n:
                break
    return tuple(tasks)


def _bare_task(
    fix: FixCommit, repository: Path, name: str, commands: tuple[str, ...], interpreter: str
) -> Task:
    return Task(
        task_id=f"{name}__{fix.sha[:12]}",
        tree=GitTree(str(repository)),
        problem_statement="unknown",
        repo=name,
        base_commit=fix.parent,
        created_at=fix.date,
        gold_patch=fix.gold_patch,
        test_patch=fix.test_patch,
        install_commands=commands,
        interpreter=interpreter,
    )


def _with_tests(
    task: Task, fix: FixCommit, store: TemplateStore, options: SandboxOptions
) -> Task | None:
    """Returns the task with its tests and its issue; None if no test detects the bug."""
    spec = options.applied(store.get(task).spec)
    paths = tuple(sorted(p for p in fix.test_files if is_test(p) and "/conftest" not in f"/{p}"))
    runs: list[SuiteRun | None] = []
    for patches in ((fix.test_patch,), (fix.test_patch, fix.gold_patch)):
        tests = SuiteSandbox(spec, options.name, has_own_pytest=task.has_own_pytest)
        try:
            for patch in patches:
                tests.apply(Patch(patch))
            runs += tests.attempt([ForkedRun(paths=paths, cpu_s=_CPU_S)])
        finally:
            tests.close()
    return _compared(task, *runs)


def _compared(task: Task, before: SuiteRun | None, after: SuiteRun | None) -> Task | None:
    if before is None or after is None:
        raise InvalidTaskError("its tests cannot be run")
    failed, passed = set(before.failed), set(before.passed)
    fail_to_pass = tuple(test for test in after.passed if test in failed)
    pass_to_pass = tuple(test for test in after.passed if test in passed)
    failures = {test: failure for test, failure in before.failures.items() if test in fail_to_pass}
    if not fail_to_pass:
        return None
    symptoms = find_symptoms(failures)
    if not symptoms:
        raise InvalidTaskError(
            "no failing test names a function of the project for the issue; import it at the top "
            "of the test file, and call it in the test"
        )
    return replace(
        task,
        problem_statement=write_statement(symptoms, fail_to_pass),
        fail_to_pass=fail_to_pass,
        pass_to_pass=pass_to_pass,
    )
