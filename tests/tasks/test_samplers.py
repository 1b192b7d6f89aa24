"""Samplers: which task comes next."""

import itertools

import numpy as np
import pytest

from coding_gym.errors import InvalidArgumentError, UnknownNameError, UnknownTaskError
from coding_gym.task import FilesTree, Task
from coding_gym.tasks import get_sampler
from coding_gym.tasks.sampling import SAMPLER_NAMES

NUM_TASKS = 5
TASKS = tuple(
    Task(task_id=str(n), tree=FilesTree({}), problem_statement="broken") for n in range(NUM_TASKS)
)


def draw(name: str, count: int, seed: int = 0) -> list[str]:
    sampler, rng = get_sampler(name, TASKS), np.random.default_rng(seed)
    return [sampler.next(rng).task_id for _ in range(count)]


@pytest.mark.parametrize("name", ["sequential", "shuffled", "uniform"])
def test_the_seed_alone_decides_the_tasks(name):
    drawn = draw(name, 3 * NUM_TASKS, seed=1)
    assert draw(name, 3 * NUM_TASKS, seed=1) == drawn
    assert (draw(name, 3 * NUM_TASKS, seed=2) == drawn) is (name == "sequential")


def test_sequential_goes_round():
    assert draw("sequential", 2 * NUM_TASKS) == [t.task_id for t in TASKS] * 2


def test_shuffled_gives_every_task_once_per_epoch_in_changing_orders():
    drawn = draw("shuffled", 4 * NUM_TASKS)
    epochs = [drawn[n : n + NUM_TASKS] for n in range(0, len(drawn), NUM_TASKS)]
    assert all(sorted(epoch) == [t.task_id for t in TASKS] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1


def test_uniform_draws_with_replacement_and_reaches_all():
    drawn = draw("uniform", 20 * NUM_TASKS)
    assert set(drawn) == {t.task_id for t in TASKS}
    assert any(a == b for a, b in itertools.pairwise(drawn))


def test_an_unknown_sampler_and_no_tasks_are_refused():
    with pytest.raises(
        UnknownNameError, match=r"sampler is called 'unifrom'; did you mean 'uniform'\?"
    ):
        get_sampler("unifrom", TASKS)
    with pytest.raises(InvalidArgumentError, match="at least one task, got none"):
        get_sampler("uniform", ())


@pytest.mark.parametrize("name", SAMPLER_NAMES)
def test_a_result_of_a_task_that_a_sampler_has_not_is_refused(name):
    sampler = get_sampler(name, TASKS)
    sampler.record("3", resolved=True)
    with pytest.raises(UnknownTaskError, match=r"a result of task 'nope', .* such as '0'"):
        sampler.record("nope", resolved=True)
