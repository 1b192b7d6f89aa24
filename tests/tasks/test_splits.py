"""Dividing tasks and drawing from them, alike on every machine."""

import hashlib
import random

import pytest

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, UnknownNameError
from coding_gym.task import FilesTree, Task
from coding_gym.tasks import sample_tasks, split_tasks


def task(number: int, **more: str) -> Task:
    fields = {"repo": f"o/{number % 10}", "created_at": f"2024-01-{number % 28 + 1:02}"}
    return Task(task_id=f"t-{number}", tree=FilesTree({}), problem_statement="", **(fields | more))


TASKS = [task(number) for number in range(200)]


def ids(tasks) -> list[str]:
    return [one.task_id for one in tasks]


def test_split_by_hash_is_md5_modulo_100():
    train, test = split_tasks(TASKS, test_fraction=0.2)
    expected = [
        one.task_id
        for one in TASKS
        if int(hashlib.md5(one.task_id.encode(), usedforsecurity=False).hexdigest(), 16) % 100 < 20
    ]
    assert ids(test) == expected
    assert sorted(ids(train) + ids(test)) == sorted(ids(TASKS))
    assert {one.split for one in train} == {"train"}
    assert {one.split for one in test} == {"test"}


def test_by_hash_the_other_tasks_do_not_matter():
    _, test = split_tasks(TASKS, seed=3)
    _, of_half = split_tasks(TASKS[::2], seed=3)
    assert set(ids(of_half)) == set(ids(test)) & set(ids(TASKS[::2]))
    _, larger = split_tasks(TASKS, test_fraction=0.355, seed=3)
    assert set(ids(test)) < set(ids(larger))
    assert ids(split_tasks(TASKS, seed=4)[1]) != ids(test)


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, 0.95])
@pytest.mark.parametrize("seed", [0, 1])
def test_by_repository_no_repository_is_on_both_sides(fraction, seed):
    train, test = split_tasks(TASKS, "repo", test_fraction=fraction, seed=seed)
    assert not {one.repo for one in train} & {one.repo for one in test}
    assert abs(len(test) - fraction * len(TASKS)) <= 20
    assert train
    assert test
    shuffled = random.Random(1).sample(TASKS, len(TASKS))
    again = split_tasks(shuffled, "repo", test_fraction=fraction, seed=seed)[1]
    assert set(ids(again)) == set(ids(test))


def test_split_by_date_tests_on_the_newest_whole_days():
    train, test = split_tasks(TASKS, "date", test_fraction=0.1)
    assert max(one.created_at for one in train) < min(one.created_at for one in test)
    assert 0 < len(test) <= 21
    _, test = split_tasks(TASKS, "date", cutoff="2024-01-15T00:00:00+00:00")
    assert {one.created_at for one in test} == {f"2024-01-{day}" for day in range(15, 29)}
    old_and_new = [task(1, created_at="2020-01-01T01:00:00+02:00"), *[task(n) for n in (9, 37)]]
    assert ids(split_tasks(old_and_new, "date", test_fraction=0.01)[1]) == ["t-9", "t-37"]


@pytest.mark.parametrize(
    ("tasks", "arguments"),
    [
        (TASKS, {"by": "hsah"}),
        (TASKS, {"test_fraction": 0}),
        (TASKS, {"test_fraction": True}),
        (TASKS, {"cutoff": "2024"}),
        (TASKS, {"by": "date", "cutoff": "?"}),
        ([task(1), task(11)], {"by": "repo"}),
        ([task(1), task(29)], {"by": "date"}),
        ([task(1, created_at=""), task(2)], {"by": "date"}),
        ("bundled", {}),
        ([*TASKS, {"instance_id": "x"}], {}),
        (None, {}),
    ],
)
def test_unusable_split_is_refused(tasks, arguments):
    with pytest.raises((InvalidArgumentError, InvalidTaskError, UnknownNameError)):
        split_tasks(tasks, **arguments)


def test_seed_alone_decides_a_draw():
    drawn = ids(sample_tasks(TASKS, 10, seed=5))
    assert ids(sample_tasks(TASKS[::-1], 20, seed=5))[:10] == drawn
    assert len(set(drawn)) == 10
    assert ids(sample_tasks(TASKS, 10, seed=6)) != drawn
    assert drawn[:3] == ["t-42", "t-196", "t-50"]  # the same in every version


def test_members_of_a_group_stay_together():
    drawn = ids(sample_tasks(TASKS, 3, group_size=4))
    assert drawn == [one for one in ids(sample_tasks(TASKS, 3)) for _ in range(4)]


@pytest.mark.parametrize(
    ("tasks", "arguments"),
    [
        (TASKS, {"n": 0}),
        (TASKS, {"n": 201}),
        (TASKS, {"n": 1, "group_size": 0}),
        ("bundled", {"n": 2}),
        ([*TASKS, {"instance_id": "x"}], {"n": 2}),
    ],
)
def test_unusable_draw_is_refused(tasks, arguments):
    with pytest.raises(InvalidArgumentError):
        sample_tasks(tasks, **arguments)
