"""Tasks from a project: measure its tests, break it, keep what its tests find, check the tasks."""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from coding_gym.arguments import at_least_one
from coding_gym.mutation.source import Source
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.synthesis.assembling import Assembler, DetectedBug
from coding_gym.synthesis.confirming import confirm
from coding_gym.synthesis.coverage_report import CoverageReport, measure_coverage
from coding_gym.synthesis.mutants import Mutant, check_operators, find_mutants, in_turn
from coding_gym.synthesis.progress import Progress
from coding_gym.synthesis.project import Project, is_program
from coding_gym.synthesis.suite import TestSandbox
from coding_gym.synthesis.trials import Trials
from coding_gym.task import Task
from coding_gym.workspace import TemplateStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Settings:
    n: int
    seed: int
    operators: tuple[str, ...]
    sandbox: str | Mapping[str, Any]
    num_workers: int
    grade_every: int
    shows_failing: bool
    on_progress: Callable[[Progress], None]
    progress: Progress = field(default_factory=Progress)


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
    """Makes tasks of a project by breaking it.

    Each task's bug makes tests of the project fail, the same ones each time; these become its
    hidden tests. The same project, seed and operators give the same tasks; asking for more gives
    the same ones first.

    Args:
        project: The project; its tests pass.
        n: How many tasks; fewer come where the project does not hold so many.
        seed: Decides which.
        operators: The kinds of bugs, such as ``boundary``; all of them where there are none.
        sandbox: What to run tests in, as ``CodingRepair-v0`` takes it.
        store: Where templates are kept; the user's cache by default.
        num_workers: Sandboxes that run tests at one time; gradings are as many again.
        grade_every: Of how many tasks one is confirmed by the grader, in which its gold patch must
            resolve it and its base must not; 1 for each of them, 0 for none.
        shows_failing: Whether half of the test functions that fail stay in the tree, for agents
            that begin with a failing test; bugs that one function finds then make no task.
        on_progress: Called whenever something was finished; the object is always the same one.

    Raises:
        InvalidTaskError: The project has no tests, or none that can be used.
        InvalidArgumentError, UnknownNameError: An argument cannot be used.
        TemplateError: The environment could not be built.
        SandboxError: A sandbox could not be opened, or died.
    """
    settings = _Settings(
        at_least_one("n", n),
        seed,
        check_operators(operators),
        sandbox,
        at_least_one("num_workers", num_workers),
        grade_every,
        shows_failing,
        on_progress,
    )
    options = SandboxOptions.parse(sandbox)
    store = store or TemplateStore(options.name)
    unbroken = project.task()
    spec = options.applied(store.get(unbroken).spec)

    def open_tests() -> TestSandbox:
        return TestSandbox(spec, options.name, has_own_pytest=unbroken.has_own_pytest)

    tests = open_tests()
    try:
        coverage = measure_coverage(tests, project.tests)
    finally:
        tests.close()
    return _Synthesis(project, coverage, settings, open_tests, store).tasks()


class _Synthesis:
    """One call of `synthesize`."""

    def __init__(
        self,
        project: Project,
        coverage: CoverageReport,
        settings: _Settings,
        open_tests: Callable[[], TestSandbox],
        store: TemplateStore,
    ) -> None:
        self._coverage, self._settings, self._store = coverage, settings, store
        self._open_tests = open_tests
        test_paths = {test.path for test in coverage.tests}
        self._contents = project.contents(
            path
            for path in coverage.lines.keys() | coverage.imported.keys()
            if path not in test_paths and is_program(path)
        )
        self._assembler = Assembler(project, coverage, shows_failing=settings.shows_failing)
        self._likenesses: set[tuple[object, ...]] = set()
        self._repaired: set[tuple[object, ...]] = set()

    def tasks(self) -> tuple[Task, ...]:
        settings = self._settings
        mutants = list(self._mutants())
        settings.progress.num_sites = len(mutants)
        trials = Trials(self._coverage, self._open_tests, settings.num_workers)
        try:
            order = in_turn(mutants, Random(f"{settings.seed} single"))  # noqa: S311
            self._check(self._bugs(trials, order), settings.n)
        finally:
            trials.close()
        return tuple(settings.progress.tasks)

    def _mutants(self) -> Iterator[Mutant]:
        for path, data in self._contents.items():
            source = Source.from_bytes(path, data)
            if source is not None:
                is_run = partial(self._coverage.is_run, path)
                yield from find_mutants(source, is_run, self._settings.operators)

    def _bugs(self, trials: Trials, mutants: Iterator[Mutant]) -> Iterator[DetectedBug]:
        """Yields what tests find, each kind once."""
        progress = self._settings.progress
        for mutant, run in trials.run(mutants):
            progress.num_tried += 1
            self._settings.on_progress(progress)
            if run is None or not run.failed:
                continue
            progress.num_found += 1
            bug = DetectedBug(mutant, run)
            if bug.likeness in self._likenesses:
                progress.num_left_out += 1
                continue
            self._likenesses.add(bug.likeness)
            yield bug

    def _check(self, bugs: Iterator[DetectedBug], n: int) -> None:
        """Adds tasks that the grader confirms, in the order of the bugs, until there are ``n``."""
        tasks = self._settings.progress.tasks
        waiting: deque[tuple[Task, Future[str]]] = deque()
        candidates = enumerate(self._candidates(bugs))
        most = 4 * self._settings.num_workers
        pool = ThreadPoolExecutor(self._settings.num_workers, thread_name_prefix="grading")
        try:
            while len(tasks) < n:
                while len(waiting) < min(most, n - len(tasks)):
                    number, task = next(candidates, (0, None))
                    if task is None:
                        break
                    waiting.append((task, pool.submit(self._grade, task, number)))
                if not waiting:
                    break
                task, future = waiting.popleft()
                self._take(task, future.result())
        finally:
            pool.shutdown(cancel_futures=True)

    def _candidates(self, bugs: Iterable[DetectedBug]) -> Iterator[Task]:
        for bug in bugs:
            task = self._assembler.task(bug)
            if task is None:
                self._settings.progress.num_left_out += 1
            else:
                yield task

    def _grade(self, task: Task, number: int) -> str:
        every = self._settings.grade_every
        if every < 1 or number % every:
            return ""
        return confirm(task, self._store, self._settings.sandbox, self._repaired)

    def _take(self, task: Task, problem: str) -> None:
        progress = self._settings.progress
        if problem:
            _log.info("%s is skipped: %s", task.task_id, problem)
            progress.num_invalid += 1
        else:
            progress.tasks.append(task)
        self._settings.on_progress(progress)
