"""Samplers: what the seed decides, and those that follow what the policy can do."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from coding_gym.errors import InvalidArgumentError, UnknownNameError, UnknownTaskError
from coding_gym.task import FilesTree, Task
from coding_gym.tasks import get_sampler
from coding_gym.tasks.sampling import SAMPLER_NAMES, AdaptiveSampler, difficulty_rank


def task(name: str, difficulty: str = "") -> Task:
    return Task(task_id=name, tree=FilesTree({}), problem_statement="broken", difficulty=difficulty)


MIXED = tuple(task(f"{label}-{n}", label) for n in range(3) for label in ("hard", "easy", "medium"))
THREE = (task("never"), task("sometimes"), task("always"))


def drawn(sampler: Any, count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [sampler.next(rng).task_id for _ in range(count)]


def taught(**options: Any) -> AdaptiveSampler:
    sampler = AdaptiveSampler(THREE, **options)
    for number in range(8):
        sampler.record("never", resolved=False)
        sampler.record("sometimes", resolved=number % 2 == 0)
        sampler.record("always", resolved=True)
    return sampler


def test_labels_are_ranked_as_people_mean_them():
    assert sorted(["hard", "easy", "Medium "], key=difficulty_rank) == ["easy", "Medium ", "hard"]
    verified = ["<15 min fix", "15 min - 1 hour", "1-4 hours", ">4 hours"]
    ranks = [difficulty_rank(label) for label in verified]
    assert ranks == sorted(set(ranks))
    assert difficulty_rank("1.5") < difficulty_rank("") == difficulty_rank("medium")


def test_difficulty_begins_with_the_easiest_and_takes_in_the_rest():
    sampler = get_sampler({"name": "difficulty", "num_episodes": 60}, MIXED)
    names = drawn(sampler, 200)
    assert {name.split("-")[0] for name in names[:5]} == {"easy"}
    assert not any(name.startswith("hard") for name in names[:20])
    assert set(names[60:]) == {one.task_id for one in MIXED}


def test_a_copy_goes_on_and_a_restarted_one_begins_again():
    sampler = get_sampler({"name": "difficulty", "num_episodes": 5}, MIXED)
    drawn(sampler, 5)
    assert set(drawn(sampler.copy(), 100)) == {one.task_id for one in MIXED}
    sampler.restart()
    assert {name.split("-")[0] for name in drawn(sampler, 1)} == {"easy"}


def test_untried_tasks_are_drawn_alike():
    counts = Counter(drawn(AdaptiveSampler(THREE), 3000))
    assert all(900 < counts[one.task_id] < 1100 for one in THREE)


def test_tasks_always_or_never_solved_are_dropped_but_revisited():
    counts = Counter(drawn(taught(revisit=0.1), 3000))
    assert counts["sometimes"] > 2600
    assert counts["never"] > 90
    assert counts["always"] > 90
    assert taught().dropped() == ("never", "always")
    assert set(drawn(taught(revisit=0), 100)) == {"sometimes"}


def test_old_results_are_forgotten():
    sampler = taught(window=8)
    for _ in range(8):
        sampler.record("sometimes", resolved=True)
    assert sampler.dropped() == ("never", "sometimes", "always")
    assert set(drawn(sampler, 200)) == {"never", "sometimes", "always"}  # all are dropped


def test_copies_have_their_own_record_and_shares_one_record():
    sampler, other = taught(), AdaptiveSampler(THREE)
    twin = sampler.copy()
    other.share(sampler)
    assert other.dropped() == ("never", "always")
    sampler.restart()
    assert sampler.dropped() == other.dropped() == ()
    assert twin.dropped() == ("never", "always")


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


def test_uniform_draws_with_replacement_and_reaches_all():
    names = drawn(get_sampler("uniform", TASKS), 20 * NUM_TASKS)
    assert set(names) == {t.task_id for t in TASKS}
    assert any(a == b for a, b in itertools.pairwise(names))


@pytest.mark.parametrize("name", SAMPLER_NAMES)
def test_no_tasks_and_results_of_other_tasks_are_refused(name):
    sampler = get_sampler(name, TASKS)
    sampler.record("3", resolved=True)
    with pytest.raises(InvalidArgumentError):
        get_sampler(name, ())
    with pytest.raises(UnknownTaskError, match="nope"):
        sampler.record("nope", resolved=True)
