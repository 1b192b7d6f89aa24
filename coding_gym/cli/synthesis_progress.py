"""How far a synthesis is: a bar on a terminal, a line now and then anywhere else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import Progress as Bar

from coding_gym.tasks.synthesis import Progress

_EVERY_TASKS = 10
_EVERY_S = 30.0


class ProgressLines:
    """Prints a line whenever ten more tasks are there, or half a minute has passed.

    Args:
        console: Where.
        n: How many tasks are wanted.
        clock: Seconds that only grow.
    """

    def __init__(self, console: Console, n: int, clock: Callable[[], float] = monotonic) -> None:
        self._console, self._n, self._clock = console, n, clock
        self._num_said, self._said_s = 0, clock()

    def show(self, progress: Progress) -> None:
        """Prints a line, if it is time."""
        now_s = self._clock()
        tens = progress.num_tasks // _EVERY_TASKS
        if tens <= self._num_said and now_s - self._said_s < _EVERY_S:
            return
        self._num_said, self._said_s = tens, now_s
        self._console.print(f"{progress.num_tasks} of {self._n} tasks; {told(progress)}")


@contextmanager
def shown(console: Console, n: int, begin: str) -> Iterator[Callable[[Progress], None]]:
    """Yields what takes the progress towards ``n`` tasks and shows it.

    Args:
        console: Where it is shown.
        n: How many tasks are wanted.
        begin: What is said until there is any progress.
    """
    if not console.is_terminal:
        console.print(begin)
        yield ProgressLines(console, n).show
        return
    with Bar(console=console, transient=True) as bars:
        bar = bars.add_task(begin, total=n)

        def show(progress: Progress) -> None:
            said = f"{told(progress)}; tasks"
            bars.update(bar, completed=progress.num_tasks, description=said)

        yield show


def summary(progress: Progress) -> str:
    """Returns what there was, and why the rest of it makes no task, in one line."""
    if progress.num_commits:
        return _history_summary(progress)
    if not progress.num_tried:
        return "nothing that tests run can be broken in the ways that were asked for"
    return (
        f"{progress.num_sites} places can be broken; {told(progress)}; of these "
        f"{progress.num_left_out} left out (like another, too plain, or not to be told), "
        f"{progress.num_invalid} not confirmed by the grader"
    )


def _history_summary(progress: Progress) -> str:
    idle = progress.num_commits - progress.num_sites
    plain = progress.num_tried - progress.num_failed - progress.num_found
    reasons = (
        (idle, "are merges, cannot be read, change many files, or not both Python code and tests"),
        (progress.num_failed, f"could not be run (the last: {progress.failure})"),
        (plain, "have no test that fails before and passes after, in a way that can be told"),
        (progress.num_invalid, "were not confirmed by the grader"),
    )
    dropped = "; ".join(f"{number} {reason}" for number, reason in reasons if number)
    return f"of {progress.num_commits} commits, {dropped}"


def told(progress: Progress) -> str:
    """Returns what was tried and what came of it."""
    return f"{progress.num_tried} tried, {progress.num_found} found by tests"
