"""``coding-gym replay``: recorded actions played again, and every answer compared."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from coding_gym.agents.predictions import GoldenAgent
from coding_gym.cli import options
from coding_gym.cli.console import terminal
from coding_gym.errors import CodingGymError, InvalidArgumentError
from coding_gym.rollout import Replay, read_trajectories
from coding_gym.rollout.replay import recorded_env
from coding_gym.rollout.replay import replay as play_again
from coding_gym.task import Task
from coding_gym.tasks import find_task, load_tasks
from coding_gym.trajectory import Trajectory

_Source = options.option(
    options.TASKS,
    "--tasks",
    help="Where the tasks are; by default the source that the file names, if bundled.",
)
_WITHOUT_ACTIONS = ("predictions", GoldenAgent.name)
_Tokenizer = typer.Option(help="The tokenizer; by default that of the file, if bundled.")
_Trust = typer.Option(
    "--trust-limits", help="Follow limits of the file that are looser than the defaults."
)


def replay(
    path: Annotated[Path, typer.Argument(metavar="TRAJECTORY", help="A JSONL file of episodes.")],
    source: Annotated[str | None, _Source] = None,
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    sandbox: options.Sandbox = "auto",
    tokenizer: Annotated[str | None, _Tokenizer] = None,
    trust_limits: Annotated[bool, _Trust] = False,
    concurrency: options.TasksPerCore = options.NUM_CORES,
) -> None:
    """Play recorded actions again and compare every observation, reward, end and patch.

    Example: coding-gym replay episodes.jsonl --tasks rows.jsonl
    """
    chosen = options.parse_sandbox(sandbox)
    arguments: dict[str, Any] = {
        "sandbox": chosen,
        "tokenizer": tokenizer,
        "trust_limits": trust_limits,
    }
    console, number = terminal(), 0
    loading = {"repositories": repositories, "environments": environments}
    for number, trajectory in enumerate(read_trajectories(path), start=1):
        if trajectory.agent in _WITHOUT_ACTIONS:
            raise InvalidArgumentError(
                f"{path} episode {number} is a prediction, with no actions to play again; grade "
                "predictions with coding-gym grade"
            )
        try:  # all of a file can be played, or nothing is
            recorded_env(trajectory, _task(trajectory, source, loading), **arguments)[0].close()
        except CodingGymError as problem:
            raise InvalidArgumentError(f"{path} episode {number}: {problem}") from None
    if not number:
        raise InvalidArgumentError(f"{path} holds no trajectory")

    def play(trajectory: Trajectory) -> Replay:
        return play_again(trajectory, _task(trajectory, source, loading), **arguments)

    replays, trajectories = [], read_trajectories(path)
    with ThreadPoolExecutor(concurrency) as pool:
        while some := list(islice(trajectories, 4 * concurrency)):  # not a whole file at once
            for one in pool.map(play, some):
                replays.append(one)
                console.print(_line(one))
    different = sum(one.difference is not None for one in replays)
    skipped = sum(bool(one.skipped) for one in replays)
    counts = f", {different} different" * bool(different) + f", {skipped} not played" * bool(
        skipped
    )
    equal, turns = len(replays) - different - skipped, sum(one.num_turns for one in replays)
    console.print(f"{equal} of {len(replays)} episodes equal{counts}; {turns} turns")
    if different:
        raise typer.Exit(1)


def _task(trajectory: Trajectory, source: str | None, loading: dict[str, Path | None]) -> Task:
    named = trajectory.settings.get("tasks") or ""
    if source is None and named not in ("bundled", "polyglot"):
        raise InvalidArgumentError(
            f"where is the task {trajectory.task_id!r}? the file names the source {named!r}; "
            "if you trust that, give it by --tasks"
        )
    needs_tests = trajectory.settings.get("grading") != "none"
    tasks = _loaded(source or named, needs_tests=needs_tests, **loading)
    return find_task(tasks, trajectory.task_id)


_loaded = cache(load_tasks)


def _line(one: Replay) -> str:
    note = f" ({one.note})" if one.note else ""
    if one.skipped:
        return f"- {one.task_id:<34} not played: {one.skipped}"
    if one.difference is None:
        return f"✔ {one.task_id:<34} {one.num_turns:>3} turns equal{note}"
    return f"✘ {one.task_id:<34} {one.num_turns:>3} turns, {one.difference}{note}"
