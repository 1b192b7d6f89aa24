"""Makes tasks from a project: inserts bugs, runs the tests that can fail, confirms tasks."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from random import Random
from threading import Event
from typing import Any, TypeVar

from coding_gym.arguments import at_least_one
from coding_gym.mutation.source import Source
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.synthesis.assembling import Assembler
from coding_gym.synthesis.confirming import confirm
from coding_gym.synthesis.coverage_report import CoverageReport, measure_coverage
from coding_gym.synthesis.mutants import Mutant, check_kinds, find_mutants, in_turn
from coding_gym.synthesis.progress import Progress
from coding_gym.synthesis.project import Project, is_program
from coding_gym.synthesis.suite import Attempt, Suite, SuiteRun
from coding_gym.task import Task
from coding_gym.workspace import TemplateStore

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
# A broken program can be slower; a run that exceeds this limit probably never ends.
_CPU_FACTOR, _MIN_CPU_S = 4.0, 2.0


def synthesize(
    project: Project,
    n: int,
    *,
    seed: int = 0,
    kinds: Collection[str] = (),
    sandbox: str | Mapping[str, Any] = "auto",
    store: TemplateStore | None = None,
    num_workers: int = 1,
    shows_failing: bool = False,
    progress: Progress | None = None,
) -> tuple[Task, ...]:
    """Makes tasks from a project by mutation.

    The bug of a task makes the same tests of the project fail in each run; these tests become the
    hidden tests. The grader confirms each task: the gold patch resolves the task, the base does
    not. The same project, seed and kinds give the same tasks; a larger ``n`` adds tasks at the end.

    Args:
        project: The project; its tests pass.
        n: Maximum number of tasks; a small project can give fewer.
        seed: The random seed of the order of bugs.
        kinds: The kinds of bugs, such as ``boundary``; empty for all.
        sandbox: The sandbox of the tests, in the form that ``CodingRepair-v0`` takes.
        store: The store of templates; by default in the user's cache.
        num_workers: Number of sandboxes that run tests at the same time.
        shows_failing: Whether half of the failing test functions stay in the tree, for agents
            that start from a failing test; then bugs that only one function detects make no task.
        progress: Records the tasks and the dropped bugs; empty at the start.

    Raises:
        InvalidTaskError: The project has no usable tests.
        InvalidArgumentError, UnknownNameError: An argument has a wrong value.
        TemplateError: The environment could not be built.
        GradingError, SandboxError: The infrastructure failed.
    """
    at_least_one("n", n)
    at_least_one("num_workers", num_workers)
    kinds = check_kinds(kinds)
    options = SandboxOptions.parse(sandbox)
    store = store or TemplateStore(options.name)
    task = project.task()
    suite = Suite(task, store.get(task).with_options(options), options.name)
    coverage = measure_coverage(suite, project.tests)
    mutants = list(_mutants(project, coverage, kinds))
    progress = progress or Progress()
    progress.num_candidates = len(mutants)
    pool = ThreadPoolExecutor(num_workers, thread_name_prefix="synthesis")
    try:
        ordered_mutants = in_turn(mutants, Random(seed))  # noqa: S311 - no secret
        run = partial(_run, suite, coverage)
        runs = _in_order(pool, run, ordered_mutants, lambda: 2 * num_workers)
        assembler = Assembler(project, coverage, shows_failing=shows_failing)
        tasks = _assembled_tasks(assembler, runs, progress)
        check = partial(_confirm, Event(), store, options)
        results = _in_order(
            pool, check, tasks, lambda: min(4 * num_workers, n - len(progress.tasks))
        )
        for candidate, confirmation in results:
            with progress.dropping(candidate.task_id):
                confirmation.result()
                progress.add(candidate)
    finally:
        pool.shutdown(cancel_futures=True)
    return tuple(progress.tasks)


def _mutants(
    project: Project, coverage: CoverageReport, kinds: Collection[str]
) -> Iterator[Mutant]:
    """Yields all mutants of the project's files that tests run."""
    test_paths = {test.path for test in coverage.tests}
    paths = coverage.lines.keys() | coverage.imported.keys()
    contents = project.contents(p for p in paths if p not in test_paths and is_program(p))
    for path, data in contents.items():
        source = Source.from_bytes(path, data)
        if source is not None:
            yield from find_mutants(source, partial(coverage.is_run, path), kinds)


def _run(suite: Suite, coverage: CoverageReport, mutant: Mutant) -> SuiteRun | None:
    """Runs the tests that a mutant can break."""
    tests = coverage.tests_of(mutant.path, mutant.lines)
    files = {mutant.path: mutant.text.encode()}
    cpu_s = _MIN_CPU_S + _CPU_FACTOR * coverage.cpu_s
    return suite.stable_run(Attempt(files=files, tests=tests, cpu_s=cpu_s))


def _assembled_tasks(
    assembler: Assembler,
    runs: Iterable[tuple[Mutant, Future[SuiteRun | None]]],
    progress: Progress,
) -> Iterator[Task]:
    """Yields the tasks of mutants; records the reason of each mutant that makes no task."""
    for mutant, future in runs:
        run = future.result()
        with progress.dropping(mutant.name):
            yield assembler.task(mutant, run)


def _confirm(confirmed: Event, store: TemplateStore, options: SandboxOptions, task: Task) -> None:
    """Confirms a task by grading; grades its gold patch only if no task was confirmed before."""
    confirm(task, store, options, grades_gold=not confirmed.is_set())
    confirmed.set()


def _in_order(
    pool: ThreadPoolExecutor,
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    max_ahead: Callable[[], int],
) -> Iterator[tuple[_Item, Future[_Result]]]:
    """Yields each item with its future, in order; starts at most ``max_ahead()`` items ahead."""
    queue: deque[tuple[_Item, Future[_Result]]] = deque()
    items = iter(items)
    while True:
        for item in islice(items, max(0, max_ahead() - len(queue))):
            queue.append((item, pool.submit(function, item)))
        if not queue:
            return
        yield queue.popleft()
