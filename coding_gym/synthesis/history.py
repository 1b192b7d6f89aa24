"""Makes tasks from bug-fix commits, with tests that fail before the commit and pass after it."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from coding_gym.addresses import find_repository
from coding_gym.arguments import at_least_one
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.patch import Patch
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.synthesis.commits import Commits, collected_files
from coding_gym.synthesis.confirming import confirm
from coding_gym.synthesis.progress import Progress
from coding_gym.synthesis.project import is_program
from coding_gym.synthesis.statement import find_symptoms, write_statement
from coding_gym.synthesis.suite import Attempt, Suite, SuiteRun
from coding_gym.task import GitTree, Task, files_of_tests
from coding_gym.workspace import TemplateStore

_CPU_S = 120.0


def tasks_from_history(
    repository: str | Path,
    n: int,
    *,
    install_commands: tuple[str, ...] = (),
    interpreter: str = "base",
    sandbox: str | Mapping[str, Any] = "auto",
    store: TemplateStore | None = None,
    progress: Progress | None = None,
) -> tuple[Task, ...]:
    """Makes tasks from commits that change code and tests, the newest first.

    The base is the parent of the commit; the tests that the commit changes are hidden. At least one
    test must fail without the commit's code and pass with the code, in every run; the grader must
    confirm the task. Commit messages stay hidden, because they describe the repair.

    Args:
        repository: A git repository on this machine.
        n: Maximum number of tasks.
        install_commands: Commands that build the environment; they run for every commit.
        interpreter: See `coding_gym.task.Task`.
        sandbox: The sandbox of the tests, in the form that ``CodingRepair-v0`` takes.
        store: The store of templates; by default in the user's cache.
        progress: Records the tasks and the dropped commits; empty at the start.

    Raises:
        InvalidArgumentError: ``n`` is below 1, or git cannot read the repository.
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
    project = Task(
        task_id=path.name,
        tree=GitTree(str(path)),
        problem_statement="unknown",
        repo=path.name,
        install_commands=install_commands,
        interpreter=interpreter,
    )
    with tempfile.TemporaryDirectory() as scratch:
        commits = Commits(path, Path(scratch), project)
        names = [*commits.names()]
        progress = progress or Progress()
        progress.num_candidates = len(names)
        for sha, name in names:
            with progress.dropping(name):
                task = commits.task(sha)
                suite = Suite(task, store.get(task).with_options(options), options.name)
                task = _with_tests(task, *_runs(suite))
                confirm(task, store, options)
                progress.add(task)
            if len(progress.tasks) >= n:
                break
    return tuple(progress.tasks)


def _runs(suite: Suite) -> Iterator[SuiteRun]:
    """Yields the run of the changed tests without the repair, and the run with the repair."""
    tests, gold = Patch(suite.task.test_patch), Patch(suite.task.gold_patch)
    paths = collected_files(suite.task.test_patch)
    for patches in ((tests,), (tests, gold)):
        run = suite.stable_run(Attempt(paths=paths, patches=patches, cpu_s=_CPU_S))
        if run is None:
            raise InvalidTaskError("the tests hang, end their process, or are unstable")
        yield run


def _with_tests(task: Task, base_run: SuiteRun, fixed_run: SuiteRun) -> Task:
    """Returns the task with its expected tests and its issue."""
    failures_before = base_run.observation.failures  # by test, or by file if its import fails
    failed_before, passed_before = {*base_run.failed, *failures_before}, {*base_run.passed}
    fail_to_pass = tuple(t for t in fixed_run.passed if failed_before & {t, *files_of_tests([t])})
    if not fail_to_pass:
        error = fixed_run.collect_error or base_run.collect_error
        raise InvalidTaskError(error or "no test fails without the commit and passes with it")
    names = {*fail_to_pass, *files_of_tests(fail_to_pass)}
    failures = {name: failure for name, failure in failures_before.items() if name in names}
    existing_paths = [change.old_path or "" for change in Patch(task.gold_patch).files]
    symptoms = find_symptoms(failures, filter(is_program, existing_paths))
    if not symptoms:
        problem = "the failures name no function that exists before the commit"
        summaries = [failure.summary for failure in failures.values()]
        raise InvalidTaskError(f"{problem}: {summaries[0]}" if summaries else problem)
    return replace(
        task,
        problem_statement=write_statement(symptoms, fail_to_pass),
        fail_to_pass=fail_to_pass,
        pass_to_pass=tuple(test for test in fixed_run.passed if test in passed_before),
    )
