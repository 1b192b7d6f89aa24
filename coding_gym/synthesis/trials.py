"""Runs the tests of mutants in several sandboxes at a time, and returns the runs in order."""

import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from coding_gym.grading.supervision import ForkedRun
from coding_gym.synthesis.coverage_report import CoverageReport
from coding_gym.synthesis.mutants import Mutant
from coding_gym.synthesis.suite import SuiteRun, SuiteSandbox, test_files

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
# Small at first, so that little work is wasted if few tasks are requested.
_FIRST_BATCH, _MAX_BATCH = 2, 12
# A broken program can be slower; a program that exceeds this limit probably never ends.
_CPU_FACTOR, _MIN_CPU_S = 4.0, 2.0


class Trials:
    """Runs the tests of broken programs.

    Args:
        coverage: The coverage of the tests.
        open_tests: Opens a sandbox.
        num_workers: Number of sandboxes that are open at the same time.
    """

    def __init__(
        self,
        coverage: CoverageReport,
        open_tests: Callable[[], SuiteSandbox],
        num_workers: int,
    ) -> None:
        self._coverage = coverage
        self._cpu_s = _MIN_CPU_S + _CPU_FACTOR * coverage.cpu_s
        self._num_workers = num_workers
        self._idle: queue.SimpleQueue[SuiteSandbox] = queue.SimpleQueue()
        self._opened: list[SuiteSandbox] = []
        self._pool = ThreadPoolExecutor(num_workers, thread_name_prefix="synthesis")
        try:
            for _ in range(num_workers):
                self._opened.append(open_tests())
                self._opened[-1].compile(test_files(coverage.trusted), self._cpu_s)
                self._idle.put(self._opened[-1])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Cancels pending runs and closes the sandboxes; idempotent."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for sandbox in self._opened:
            sandbox.close()

    def run(self, mutants: Iterable[Mutant]) -> Iterator[tuple[Mutant, SuiteRun | None]]:
        """Yields every mutant with the run of its tests, in order.

        The run is None if it took too long, is unstable, or damaged the report of its sandbox.

        Raises:
            SandboxError: A sandbox died.
        """
        batches, num_waiting = _batches(iter(mutants)), self._num_workers + 1
        for batch, runs in in_order(self._pool, self._try, batches, lambda: num_waiting):
            yield from zip(batch, runs, strict=True)

    def _try(self, batch: list[Mutant]) -> list[SuiteRun | None]:
        sandbox = self._idle.get()
        try:
            attempts = [self._attempt(mutant) for mutant in batch]
            return sandbox.attempt_each(attempts, self._coverage.modules)
        finally:
            self._idle.put(sandbox)

    def _attempt(self, mutant: Mutant) -> ForkedRun:
        tests = self._coverage.tests_of(mutant.path, mutant.lines)
        files = {mutant.path: mutant.text.encode()}
        return ForkedRun(paths=test_files(tests), files=files, tests=tests, cpu_s=self._cpu_s)


def in_order(
    pool: ThreadPoolExecutor,
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    max_waiting: Callable[[], int],
) -> Iterator[tuple[_Item, _Result]]:
    """Yields each item with its result, in order; at most ``max_waiting()`` items are started."""
    waiting: deque[tuple[_Item, Future[_Result]]] = deque()
    items = iter(items)
    while True:
        for item in islice(items, max(0, max_waiting() - len(waiting))):
            waiting.append((item, pool.submit(function, item)))
        if not waiting:
            return
        item, future = waiting.popleft()
        yield item, future.result()


def _batches(mutants: Iterator[Mutant]) -> Iterator[list[Mutant]]:
    size = _FIRST_BATCH
    while batch := list(islice(mutants, size)):
        yield batch
        size = min(2 * size, _MAX_BATCH)
