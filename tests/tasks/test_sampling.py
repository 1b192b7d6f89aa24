"""Samplers that depend on the seed or on results; splits, equal on all machines."""

import hashlib
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from coding_gym.errors import (
    InvalidArgumentError,
    UnknownNameError,
    UnknownTaskError,
)
from coding_gym.task import FilesTree, Task
from coding_gym.tasks import get_sampler, split_tasks
from coding_gym.tasks.sampling import AdaptiveSampler, difficulty_rank


def task(name: str, difficulty: str = "") -> Task:
    return Task(task_id=name, tree=FilesTree({}), problem_statement="broken", difficulty=difficulty)


MIXED = tuple(task(f"{label}-{n}", label) for n in range(3) for label in ("hard", "easy", "medium"))
THREE = (task("never"), task("sometimes"), task("always"))


def drawn(sampler: Any, count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [sampler.next(rng).task_id for _ in range(count)]


def recorded(**options: Any) -> AdaptiveSampler:
    sampler = AdaptiveSampler(THREE, **options)
    for number in range(8):
        sampler.record("never", resolved=False)
        sampler.record("sometimes", resolved=number % 2 == 0)
        sampler.record("always", resolved=True)
    return sampler


def test_labels_of_difficulty_are_ranked():
    assert sorted(["hard", "easy", "Medium "], key=difficulty_rank) == ["easy", "Medium ", "hard"]
    verified = ["<15 min fix", "15 min - 1 hour", "1-4 hours", ">4 hours"]
    ranks = [difficulty_rank(label) for label in verified]
    assert ranks == sorted(set(ranks))
    assert difficulty_rank("1.5") < difficulty_rank("") == difficulty_rank("medium")


def test_difficulty_starts_with_easy_tasks_and_adds_the_others():
    sampler = get_sampler({"name": "difficulty", "num_episodes": 60}, MIXED)
    for _ in range(2):
        names = drawn(sampler, 200)
        assert {name.split("-")[0] for name in names[:5]} == {"easy"}
        assert not any(name.startswith("hard") for name in names[:20])
        assert set(names[60:]) == {one.task_id for one in MIXED}
        sampler.restart()


def test_tasks_always_or_never_solved_are_dropped_but_revisited():
    counts = Counter(drawn(recorded(revisit=0.1), 3000))
    assert counts["sometimes"] > 2600
    assert counts["never"] > 90
    assert counts["always"] > 90
    assert set(drawn(recorded(revisit=0), 100)) == {"sometimes"}


def test_old_results_are_forgotten():
    """All tasks are dropped, so that they are as likely as tasks without results."""
    sampler = recorded(window=8)
    for _ in range(8):
        sampler.record("sometimes", resolved=True)
    for one in (sampler, AdaptiveSampler(THREE), get_sampler("uniform", THREE)):
        counts = Counter(drawn(one, 3000))
        assert all(900 < counts[task.task_id] < 1100 for task in THREE)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"name": "adaptive", "windw": 3}, "windw"),
        ({"name": "adaptive", "window": 4}, "min_tries"),
        ({"name": "adaptive", "revisit": 2}, "revisit"),
        ({"name": "difficulty", "start": 0}, "start"),
        ({"name": "uniform", "window": 4}, "window"),
        ({"window": 4}, "name"),
        ({"name": None}, "None"),
        ("unifrom", "unifrom"),
    ],
)
def test_unusable_arguments_are_refused_by_name(options: Any, named: str):
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=named):
        get_sampler(options, THREE)


NUM_TASKS = 5
TASKS = tuple(task(str(n)) for n in range(NUM_TASKS))


@pytest.mark.parametrize("name", ["sequential", "shuffled", "uniform"])
def test_the_seed_alone_decides_the_tasks(name):
    first, same, other = (
        drawn(get_sampler(name, TASKS), 3 * NUM_TASKS, seed) for seed in (1, 1, 2)
    )
    assert first == same
    assert (first == other) is (name == "sequential")


def test_shuffled_gives_every_task_once_per_epoch():
    names = drawn(get_sampler("shuffled", TASKS), 4 * NUM_TASKS)
    epochs = [tuple(names[n : n + NUM_TASKS]) for n in range(0, len(names), NUM_TASKS)]
    assert all(sorted(epoch) == [t.task_id for t in TASKS] for epoch in epochs)
    assert len(set(epochs)) > 1
    assert drawn(get_sampler("sequential", TASKS), NUM_TASKS) == [t.task_id for t in TASKS]


@pytest.mark.parametrize("name", ["adaptive", "difficulty", "sequential", "shuffled", "uniform"])
def test_no_tasks_and_results_of_other_tasks_are_refused(name):
    sampler = get_sampler(name, TASKS)
    sampler.record("3", resolved=True)
    with pytest.raises(InvalidArgumentError):
        get_sampler(name, ())
    with pytest.raises(UnknownTaskError, match="nope"):
        sampler.record("nope", resolved=True)


def dated(number: int, **more: str) -> Task:
    fields = {"repo": f"o/{number % 10}", "created_at": f"2024-01-{number % 28 + 1:02}"}
    return Task(task_id=f"t-{number}", tree=FilesTree({}), problem_statement="", **(fields | more))


DATED = [dated(number) for number in range(200)]


def ids(tasks) -> list[str]:
    return [one.task_id for one in tasks]


def test_split_by_hash_is_md5_modulo_100():
    train, test = split_tasks(DATED, test_fraction=0.2)
    expected = [
        one.task_id
        for one in DATED
        if int(hashlib.md5(one.task_id.encode(), usedforsecurity=False).hexdigest(), 16) % 100 < 20
    ]
    assert ids(test) == expected
    assert sorted(ids(train) + ids(test)) == sorted(ids(DATED))
    assert {one.split for one in train} == {"train"}
    assert {one.split for one in test} == {"test"}


def test_split_by_hash_depends_on_the_seed():
    plain, other, again = (set(ids(split_tasks(DATED, seed=seed)[1])) for seed in (0, 1, 1))
    assert plain != other == again


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, 0.95])
@pytest.mark.parametrize("seed", [0, 1])
def test_split_by_repository_puts_each_repository_on_one_side(fraction, seed):
    train, test = split_tasks(DATED, "repo", test_fraction=fraction, seed=seed)
    assert not {one.repo for one in train} & {one.repo for one in test}
    assert abs(len(test) - fraction * len(DATED)) <= 20
    assert train
    assert test
    shuffled = random.Random(1).sample(DATED, len(DATED))
    again = split_tasks(shuffled, "repo", test_fraction=fraction, seed=seed)[1]
    assert set(ids(again)) == set(ids(test))


def test_split_by_date_tests_on_the_tasks_from_the_cutoff_on():
    train, test = split_tasks(DATED, "date", cutoff="2024-01-15T01:00:00+01:00")
    assert {one.created_at for one in test} == {f"2024-01-{day}" for day in range(15, 29)}
    assert len(train) + len(test) == len(DATED)


@pytest.mark.parametrize(
    ("tasks", "arguments"),
    [
        (DATED, {"by": "hsah"}),
        (DATED, {"test_fraction": 0}),
        (DATED, {"test_fraction": True}),
        (DATED, {"cutoff": "2024"}),
        (DATED, {"by": "date", "cutoff": "?"}),
        ([dated(1), dated(11)], {"by": "repo"}),
        (DATED, {"by": "date"}),
        ([dated(1, created_at=""), dated(2)], {"by": "date", "cutoff": "2024-01-15"}),
    ],
)
def test_unusable_split_is_refused(tasks, arguments):
    with pytest.raises((InvalidArgumentError, UnknownNameError)):
        split_tasks(tasks, **arguments)
