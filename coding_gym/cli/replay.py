"""``coding-gym replay``: recorded actions played again, and every answer compared."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache, partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.errors import CodingGymError, InvalidArgumentError
from coding_gym.rollout import Replay, read_trajectories
from coding_gym.rollout import replay as play_again
from coding_gym.rollout.record_check import check_replayable
from coding_gym.rollout.recorded_env import tokenizer_of
from coding_gym.task import Task
from coding_gym.tasks import find_task, load_tasks
from coding_gym.trajectory import Trajectory

_OURS = ("bundled", "polyglot")  # sources that a file may name and we follow


def replay(
    path: Annotated[Path, typer.Argument(metavar="TRAJECTORY", help="A JSONL file of episodes.")],
    task_source: Annotated[
        str | None,
        typer.Option(
            "--task-source",
            "-s",
            help="Where the tasks are, as --source of other commands; by default the bundled "
            "source that the file names.",
        ),
    ] = None,
    sandbox: options.Sandbox = "auto",
    tokenizer: Annotated[
        str | None,
        typer.Option(help="The tokenizer; by default the one that the file names, if bundled."),
    ] = None,
    trust_limits: Annotated[
        bool,
        typer.Option(
            "--trust-limits",
            help="Let the file raise the sandbox's limits and the time per command above the "
            "defaults.",
        ),
    ] = False,
    workers: options.Workers = None,
) -> None:
    """Play recorded actions again and compare every observation, reward, end and patch."""
    chosen = options.parse_sandbox(sandbox)
    num_episodes = _check(path, task_source, tokenizer)
    play = partial(play_again, sandbox=chosen, tokenizer=tokenizer, trust_limits=trust_limits)
    console = terminal()
    columns = (*Progress.get_default_columns()[:3], MofNCompleteColumn(), TimeRemainingColumn())
    replays = []
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("episodes", total=num_episodes)
        for one in _played(path, task_source, play, workers or os.cpu_count() or 1):
            replays.append(one)
            progress.advance(bar)
            _show(progress.console, one)
    different = sum(one.difference is not None for one in replays)
    skipped = sum(bool(one.skipped) for one in replays)
    told = f", {different} different" if different else ""
    told += f", {skipped} not played" if skipped else ""
    equal = len(replays) - different - skipped
    turns = sum(one.num_turns for one in replays)
    console.print(f"{equal} of {len(replays)} episodes equal{told}; {turns} turns")
    if different:
        raise typer.Exit(1)


def _check(path: Path, source: str | None, tokenizer: str | None) -> int:
    """Returns how many episodes a file holds, once all of them are known to be replayable."""
    number = 0
    for number, trajectory in enumerate(read_trajectories(path), start=1):
        try:
            check_replayable(trajectory)
            tokenizer_of(trajectory, tokenizer)
            _task(trajectory, source)
        except CodingGymError as problem:
            raise InvalidArgumentError(f"{path} episode {number}: {problem}") from None
    if not number:
        raise InvalidArgumentError(f"{path} holds no trajectory")
    return number


def _task(trajectory: Trajectory, source: str | None) -> Task:
    """Returns a record's task; only bundled sources are followed on the word of a file."""
    named = trajectory.settings.get("tasks") or ""
    if source is None and named not in _OURS:
        said = f"the file names the source {named!r}" if named else "the file names no source"
        raise InvalidArgumentError(
            f"where is the task {trajectory.task_id!r}? {said}; say it by --task-source"
        )
    return find_task(_loaded(source or named), trajectory.task_id)


@cache
def _loaded(source: str) -> tuple[Task, ...]:
    return load_tasks(source)


def _played(
    path: Path, source: str | None, play: Callable[[Trajectory, Task], Replay], num_workers: int
) -> Iterator[Replay]:
    """Yields what came of each episode, as they are done; few of a file are held at a time."""
    pool = ThreadPoolExecutor(num_workers)
    waiting: set[Future[Replay]] = set()
    try:
        for trajectory in read_trajectories(path):
            task = _task(trajectory, source)
            waiting.add(pool.submit(play, trajectory, task))
            if len(waiting) > num_workers:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        for future in waiting:
            yield future.result()
    finally:  # after an interrupt only the episodes in progress are waited for
        pool.shutdown(cancel_futures=True)


def _show(console: Console, one: Replay) -> None:
    note = f" ({one.note})" if one.note else ""
    if one.skipped:
        console.print(f"- {one.task_id:<34} not played: {one.skipped}")
    elif one.difference is None:
        console.print(f"✔ {one.task_id:<34} {one.num_turns:>3} turns equal{note}")
    else:
        console.print(f"✘ {one.task_id:<34} {one.num_turns:>3} turns, {one.difference}{note}")
