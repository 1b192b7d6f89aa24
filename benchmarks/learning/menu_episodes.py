"""Plays episodes of `MenuActions` on every task of a file, with any policy."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import coding_gym
from coding_gym.errors import InfrastructureError
from coding_gym.repair.menu import FIRST_CANDIDATE, RUN_TESTS, SUBMIT
from coding_gym.task import Task
from coding_gym.wrappers.menu_actions import CANDIDATE_FEATURES, MENU_FEATURES, MenuActions

NUM_CANDIDATES = 48
MAX_TURNS = 24
ENV_KWARGS: Mapping[str, Any] = {
    "max_turns": MAX_TURNS,
    "max_obs_tokens": 64,  # the policies read numbers, not text
    "grading": "cached",  # each process grades a patch once
}
MENU: Mapping[str, Any] = {"name": "MenuActions", "kwargs": {"num_candidates": NUM_CANDIDATES}}
_EXISTS = CANDIDATE_FEATURES.index("exists")

T = TypeVar("T")

Observation = Mapping[str, NDArray[Any]]
Choose = Callable[[Observation, np.random.Generator], int]


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of one task.

    Attributes:
        program: The program with the bug.
        resolved: Whether the patch passes the hidden tests; from `explore`, whether any patch does.
        test_runs: Number of actions of the episode that ran the visible tests.
    """

    program: str
    resolved: bool
    test_runs: int = 0


def random_choice(observation: Observation, draws: np.random.Generator) -> int:
    """Samples uniformly from the actions that the mask allows."""
    return int(draws.choice(np.flatnonzero(observation["action_mask"])))


def in_order(observation: Observation, _: np.random.Generator) -> int:
    """Tries the candidates in order; submits the first candidate with which all visible tests pass.

    This is the search of the agent ``template-repair``, limited by the turns of an episode.
    """
    mask = observation["action_mask"]
    if _state(observation, "changed") and not _state(observation, "tests_current"):
        return RUN_TESTS
    untried_candidates = np.flatnonzero(mask[FIRST_CANDIDATE:])
    is_done = _state(observation, "passed_all") or not len(untried_candidates)
    return SUBMIT if is_done else FIRST_CANDIDATE + int(untried_candidates[0])


def _state(observation: Observation, name: str) -> float:
    return float(observation["menu"][MENU_FEATURES.index(name)])


def play(tasks: Path, choose: Choose, *, seed: int, workers: int = 2) -> list[TaskResult]:
    """Plays each task of a file once.

    Args:
        tasks: The file.
        choose: Returns the number of an action.
        seed: Seed of the policy's random numbers.
        workers: Number of simultaneous episodes.

    Raises:
        InfrastructureError: A sandbox or a grade failed, so a result is missing.
    """

    def play_task(env: gym.Env[Any, Any], task: Task) -> TaskResult:
        draws = np.random.default_rng([seed, zlib.crc32(task.task_id.encode())])
        observation, info = env.reset()
        num_runs = 0
        is_over = False
        while not is_over:
            action = choose(observation, draws)
            observation, _, terminated, truncated, info = env.step(action)
            is_over = terminated or truncated
            num_runs += action == RUN_TESTS
        return TaskResult(task.repo, _resolved(info), num_runs)

    return list(_visit(tasks, play_task, workers, MAX_TURNS))


def explore(tasks: Path, workers: int = 4) -> list[TaskResult]:
    """Tries every candidate of each task, and grades candidates that pass the visible tests.

    The results are cached in this process and in processes forked from it, so later training on
    these tasks rarely waits for tests.

    Args:
        tasks: The file.
        workers: Number of simultaneous tasks.

    Raises:
        InfrastructureError: A sandbox or a grade failed.
    """

    def explore_task(env: gym.Env[Any, Any], task: Task) -> TaskResult:
        def observe(action: int) -> Observation:
            observation: Observation
            observation, *_, info = env.step(action)
            _check(info)
            return observation

        observation, _ = env.reset()
        candidates = np.flatnonzero(observation["candidates"][:, _EXISTS])
        passing_actions = []
        for action in (FIRST_CANDIDATE + candidates).tolist():
            observe(action)
            observation = observe(RUN_TESTS)
            if _state(observation, "passed_all"):
                passing_actions.append(action)
        num_resolved = 0
        for action in passing_actions:
            env.reset()
            env.step(action)
            *_, info = env.step(SUBMIT)
            num_resolved += _resolved(info)
        return TaskResult(task.repo, num_resolved > 0)

    num_tasks = len(coding_gym.load_tasks(str(tasks)))
    results = _visit(tasks, explore_task, workers, 3 * NUM_CANDIDATES)
    return list(track(results, f"trying edits of {tasks.name}", num_tasks))


def _visit(
    tasks: Path,
    visit: Callable[[gym.Env[Any, Any], Task], T],
    workers: int,
    max_turns: int,
) -> Iterator[T]:
    """Yields the result of a function for each task of a file and an env with the task."""

    def visit_task(task: Task) -> T:
        settings = {**ENV_KWARGS, "max_turns": max_turns, "task_ids": [task.task_id]}
        env = gym.make("CodingRepair-v0", tasks=str(tasks), **settings)
        with closing(MenuActions(env, NUM_CANDIDATES)) as menu:
            return visit(menu, task)

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(visit_task, coding_gym.load_tasks(str(tasks)))


def _resolved(info: Mapping[str, Any]) -> bool:
    _check(info)
    return bool(info["resolved"])


def _check(info: Mapping[str, Any]) -> None:
    """Raises an error after an infrastructure failure."""
    if info["mask_sample"]:
        raise InfrastructureError(f"the episode of {info['task_id']} failed: {info['error']}")
