"""Makes tasks from a project: makes bugs, keeps those that its tests detect, checks the tasks."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from random import Random
from typing import Any

from coding_gym.arguments import at_least_one
from coding_gym.errors import InvalidTaskError
from coding_gym.mutation.source import Source
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.synthesis.assembling import Assembler
from coding_gym.synthesis.confirming import confirm
from coding_gym.synthesis.coverage_report import CoverageReport, measure_coverage
from coding_gym.synthesis.mutants import Mutant, check_operators, find_mutants, in_turn
from coding_gym.synthesis.progress import Progress
from coding_gym.synthesis.project import Project, is_program
from coding_gym.synthesis.suite import SuiteRun, SuiteSandbox
from coding_gym.synthesis.trials import Trials, in_order
from coding_gym.task import Task
from coding_gym.workspace import TemplateStore


def synthesize(
    project: Project,
    n: int,
    *,
    seed: int = 0,
    operators: Collection[str] = (),
    sandbox: str | Mapping[str, Any] = "auto",
    store: TemplateStore | None = None,
    num_workers: int = 1,
    grade_every: int = 1,
    shows_failing: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> tuple[Task, ...]:
    """Makes tasks from a project by mutation.

    The bug of a task makes the same tests of the project fail in each run; they become its hidden
    tests. The same project, seed and operators give the same tasks; a larger ``n`` adds tasks at
    the end.

    Args:
        project: The project; its tests pass.
        n: Number of tasks; the result has fewer if the project has fewer bugs.
        seed: The random seed of the order of bugs.
        operators: The kinds of bugs, such as ``boundary``; empty for all.
        sandbox: The sandbox of the tests, in the form that ``CodingRepair-v0`` takes.
        store: The store of templates; by default in the user's cache.
        num_workers: Number of sandboxes that run tests at the same time, and of parallel gradings.
        grade_every: The grader confirms one task in this many: its gold patch must resolve it and
            its base must not. 1 for every task, 0 for none.
        shows_failing: Whether half of the failing test functions stay in the tree, for agents
            that start from a failing test; then bugs that only one function detects make no task.
        on_progress: Called after every step, always with the same object.

    Raises:
        InvalidTaskError: The project has no usable tests.
        InvalidArgumentError, UnknownNameError: An argument has a wrong value.
        TemplateError: The environment could not be built.
        SandboxError: A sandbox could not be opened, or died.
    """
    at_least_one("n", n)
    at_least_one("num_workers", num_workers)
    kinds = check_operators(operators)
    options = SandboxOptions.parse(sandbox)
    store = store or TemplateStore(options.name)
    unbroken = project.task()
    spec = options.applied(store.get(unbroken).spec)

    def open_tests() -> SuiteSandbox:
        return SuiteSandbox(spec, options.name, has_own_pytest=unbroken.has_own_pytest)

    with closing(open_tests()) as tests:
        coverage = measure_coverage(tests, project.tests)
    mutants = list(_mutants(project, coverage, kinds))
    progress = Progress(num_candidates=len(mutants))
    report = partial(on_progress, progress)
    assembler = Assembler(project, coverage, shows_failing=shows_failing)
    repaired: set[tuple[object, ...]] = set()

    def problem(numbered: tuple[int, Task]) -> str:
        number, task = numbered
        if grade_every < 1 or number % grade_every:
            return ""
        return confirm(task, store, sandbox, repaired)

    def num_wanted() -> int:
        return min(4 * num_workers, n - len(progress.tasks))

    trials = Trials(coverage, open_tests, num_workers)
    pool = ThreadPoolExecutor(num_workers, thread_name_prefix="grading")
    try:
        runs = trials.run(in_turn(mutants, Random(f"{seed} single")))  # noqa: S311
        candidates = enumerate(_tasks(assembler, runs, progress, report))
        for (_, task), error in in_order(pool, problem, candidates, num_wanted):
            if error:
                progress.dropped.append((task.task_id, error))
            else:
                progress.tasks.append(task)
            report()
    finally:
        pool.shutdown(cancel_futures=True)
        trials.close()
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


def _tasks(
    assembler: Assembler,
    runs: Iterable[tuple[Mutant, SuiteRun | None]],
    progress: Progress,
    report: Callable[[], None],
) -> Iterator[Task]:
    """Yields tasks for the grader to confirm; records why other mutants make none."""
    for mutant, run in runs:
        try:
            yield assembler.task(mutant, run)
        except InvalidTaskError as error:
            progress.dropped.append((mutant.name, str(error)))
            report()
