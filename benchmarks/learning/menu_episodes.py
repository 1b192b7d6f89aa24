"""Episodes of `MenuActions` on every task of a split, by any policy, and rates with intervals."""

import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import coding_gym
from coding_gym.errors import MachineryError
from coding_gym.repair.menu import FIRST_CANDIDATE, LOCATE, RUN_TESTS, SUBMIT
from coding_gym.task import Task
from coding_gym.wrappers.menu_actions import CANDIDATE_FEATURES, MENU_FEATURES, MenuActions

NUM_CANDIDATES = 48
MAX_TURNS = 24
ENV_KWARGS: Mapping[str, Any] = {
    "max_turns": MAX_TURNS,
    "max_obs_tokens": 64,  # the policies read numbers, not text
    "grading": "cached",  # each patch once in a process
}
_NUM_DRAWS = 10_000
_EXISTS = CANDIDATE_FEATURES.index("exists")

T = TypeVar("T")

Observation = Mapping[str, NDArray[Any]]
Outcomes = Mapping[tuple[str, str], Sequence[bool]]
"""Whether episodes were resolved, by program and task."""
Choose = Callable[[Observation, np.random.Generator], int]


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one episode.

    Attributes:
        task_id: Its task.
        program: The program that is broken.
        resolved: Whether the patch passes the hidden tests.
        turns: Actions that were played.
        test_runs: How many of them ran the visible tests.
        patch: The change, where it is resolved.
    """

    task_id: str
    program: str
    resolved: bool
    turns: int
    test_runs: int
    patch: str = ""


@dataclass(frozen=True, slots=True)
class Explored:
    """What the candidates of one task are worth.

    Attributes:
        task_id: The task.
        program: The program that is broken.
        num_candidates: How many candidates there are.
        num_passing: How many of them pass the visible tests.
        resolved: The numbers of those that also pass the hidden tests.
    """

    task_id: str
    program: str
    num_candidates: int
    num_passing: int
    resolved: tuple[int, ...]


class ShuffledMenu(gym.Wrapper[Any, Any, Any, Any]):
    """Offers the candidates of each episode in a random order.

    Their features, the rank among them, move along: a policy that scores each candidate by its
    features plays the same episodes, one that learned numbers of slots does not.

    Args:
        env: A `MenuActions`.
        seed: Of the orders, with the id of the task.
    """

    def __init__(self, env: gym.Env[Any, Any], seed: int) -> None:
        super().__init__(env)
        self._seed = seed
        self._order = np.arange(0)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Starts an episode with another order."""
        observation, info = self.env.reset(**kwargs)
        number = zlib.crc32(info["task_id"].encode())
        draws = np.random.default_rng([self._seed, number])
        self._order = draws.permutation(len(observation["candidates"]))
        return self._shuffled(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Plays an action of the shuffled menu."""
        if action >= FIRST_CANDIDATE:
            action = FIRST_CANDIDATE + self._order[action - FIRST_CANDIDATE]
        observation, *rest = self.env.step(int(action))
        return self._shuffled(observation), *rest  # type: ignore[return-value]

    def _shuffled(self, observation: dict[str, Any]) -> dict[str, Any]:
        mask = observation["action_mask"]
        candidates = mask[FIRST_CANDIDATE:][self._order]
        return {
            **observation,
            "candidates": observation["candidates"][self._order],
            "action_mask": np.concatenate([mask[:FIRST_CANDIDATE], candidates]),
        }


def menu(num_candidates: int = NUM_CANDIDATES) -> dict[str, Any]:
    """Returns the wrapper that offers this many edits, as `make_vec` takes it."""
    return {"name": "MenuActions", "kwargs": {"num_candidates": num_candidates}}


def random_choice(observation: Observation, draws: np.random.Generator) -> int:
    """Draws among the actions that make sense now."""
    return int(draws.choice(np.flatnonzero(observation["action_mask"])))


def first_entry(observation: Observation, _: np.random.Generator) -> int:
    """Locates, puts the first candidate in place, and submits."""
    mask = observation["action_mask"]
    if mask[LOCATE]:
        return LOCATE
    is_first = not _state(observation, "changed") and mask[FIRST_CANDIDATE]
    return FIRST_CANDIDATE if is_first else SUBMIT


def in_order(observation: Observation, _: np.random.Generator) -> int:
    """Tries the candidates from the first on, and submits the first that passes all tests.

    It is the search of `template-repair` with as many test runs as fit into an episode.
    """
    mask = observation["action_mask"]
    if mask[LOCATE]:
        return LOCATE
    if _state(observation, "changed") and not _state(observation, "tests_current"):
        return RUN_TESTS
    left = np.flatnonzero(mask[FIRST_CANDIDATE:])
    is_done = _state(observation, "passed_all") or not len(left)
    return SUBMIT if is_done else FIRST_CANDIDATE + int(left[0])


def _state(observation: Observation, name: str) -> float:
    return float(observation["menu"][MENU_FEATURES.index(name)])


def play(
    tasks: Path,
    choose: Choose,
    *,
    seed: int,
    is_shuffled: bool = False,
    workers: int = 2,
    num_candidates: int = NUM_CANDIDATES,
) -> list[Played]:
    """Plays each task of a file once.

    Args:
        tasks: The file.
        choose: Gives the number of an action.
        seed: Of its draws and of the orders of shuffled menus.
        is_shuffled: Whether the candidates of each episode come in a random order.
        workers: Episodes at once.
        num_candidates: Edits on the menu.

    Raises:
        MachineryError: A sandbox or a grade failed, which says nothing of the policy.
    """

    def played(env: gym.Env[Any, Any], task: Task) -> Played:
        draws = np.random.default_rng([seed, zlib.crc32(task.task_id.encode())])
        episode: gym.Env[Any, Any] = ShuffledMenu(env, seed) if is_shuffled else env
        observation, _ = episode.reset(options={"task_id": task.task_id})
        num_turns = num_runs = 0
        info: dict[str, Any] = {}
        is_over = False
        while not is_over:
            action = choose(observation, draws)
            observation, _, terminated, truncated, info = episode.step(action)
            is_over = terminated or truncated
            num_turns, num_runs = num_turns + 1, num_runs + (action == RUN_TESTS)
        is_resolved = _resolved(info)
        patch = info["patch"] if is_resolved else ""
        return Played(task.task_id, task.repo, is_resolved, num_turns, num_runs, patch)

    return list(_visit(tasks, played, workers, MAX_TURNS, num_candidates))


def explore(
    tasks: Path, num_graded: int = 0, workers: int = 4, num_candidates: int = NUM_CANDIDATES
) -> list[Explored]:
    """Tries every candidate of each task, and grades those that pass the visible tests.

    Afterwards this process, and processes that are forked from it, know what all candidates do, so
    that training on these tasks waits for no test.

    Args:
        tasks: The file.
        num_graded: The first candidates, which are graded whether they pass or not, for policies
            that submit what fails.
        workers: Tasks at once.
        num_candidates: Edits on the menu.

    Raises:
        MachineryError: A sandbox or a grade failed.
    """

    def explored(env: gym.Env[Any, Any], task: Task) -> Explored:
        options = {"task_id": task.task_id}

        def after(action: int) -> Observation:
            observation: Observation
            observation, *_, info = env.step(action)
            _check(info)
            return observation

        env.reset(options=options)
        known = np.flatnonzero(after(LOCATE)["candidates"][:, _EXISTS])
        passing = []
        for action in (FIRST_CANDIDATE + known).tolist():
            after(action)
            observation = after(RUN_TESTS)
            if _state(observation, "passed_all"):
                passing.append(action)
        resolved = []
        for action in sorted({*passing, *(FIRST_CANDIDATE + known[:num_graded]).tolist()}):
            env.reset(options=options)
            env.step(LOCATE)
            env.step(action)
            *_, info = env.step(SUBMIT)
            if _resolved(info):
                resolved.append(action - FIRST_CANDIDATE)
        return Explored(task.task_id, task.repo, len(known), len(passing), tuple(resolved))

    num_tasks = len(coding_gym.load_tasks(str(tasks)))
    visited = _visit(tasks, explored, workers, 3 * num_candidates, num_candidates)
    return list(track(visited, f"trying edits of {tasks.name}", num_tasks))


def _visit(
    tasks: Path,
    visit: Callable[[gym.Env[Any, Any], Task], T],
    workers: int,
    max_turns: int,
    num_candidates: int,
) -> Iterator[T]:
    """Yields what each task of a file gives, visited by one environment per thread."""
    local = threading.local()
    opened: list[gym.Env[Any, Any]] = []

    def open_env() -> None:
        settings = {**ENV_KWARGS, "max_turns": max_turns}
        env = gym.make("CodingRepair-v0", tasks=str(tasks), **settings)
        local.env = MenuActions(env, num_candidates)
        opened.append(local.env)

    try:
        with ThreadPoolExecutor(workers, initializer=open_env) as pool:
            found = coding_gym.load_tasks(str(tasks))
            yield from pool.map(lambda task: visit(local.env, task), found)
    finally:
        for env in opened:
            env.close()


def _resolved(info: Mapping[str, Any]) -> bool:
    _check(info)
    return bool(info["resolved"])


def _check(info: Mapping[str, Any]) -> None:
    """Raises where our own side failed, which says nothing of a policy."""
    if info["mask_sample"]:
        raise MachineryError(f"the episode of {info['task_id']} failed: {info['error']}")


def rate(outcomes: Outcomes) -> tuple[float, float, float]:
    """Returns the share of resolved episodes, and its 95 % interval over programs."""
    return _over_programs({task: float(np.mean(found)) for task, found in outcomes.items()})


def difference(one: Outcomes, other: Outcomes) -> tuple[float, float, float]:
    """Returns how much more of the same tasks one policy resolves, and the 95 % interval.

    Pairs the policies by task.

    Raises:
        ValueError: They did not play the same tasks.
    """
    if one.keys() != other.keys():
        raise ValueError(f"{len(one.keys() ^ other.keys())} tasks were played by one policy alone")
    return _over_programs({t: float(np.mean(one[t]) - np.mean(other[t])) for t in one})


def _over_programs(values: Mapping[tuple[str, str], float]) -> tuple[float, float, float]:
    """The mean over tasks; programs are drawn anew, with all their tasks (percentile bootstrap).

    Runs of several seeds are averaged first: the interval is about other programs, not other seeds.
    """
    groups: dict[str, list[float]] = {}
    for (program, _), value in values.items():
        groups.setdefault(program, []).append(value)
    sums = np.array([sum(group) for group in groups.values()])
    sizes = np.array([len(group) for group in groups.values()])
    chosen = np.random.default_rng(0).integers(len(groups), size=(_NUM_DRAWS, len(groups)))
    means = sums[chosen].sum(1) / sizes[chosen].sum(1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(sums.sum() / sizes.sum()), float(low), float(high)
