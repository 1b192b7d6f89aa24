import pytest

from postbox import ManualClock, Queue, RetryPolicy


def delays(policy, count):
    return [policy.delay(attempts) for attempts in range(1, count + 1)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [1, 2, 4, 8]),
        ({"first_delay": 5, "factor": 3}, [5, 15, 45, 135]),
        ({"first_delay": 0.5, "factor": 1.5}, [0.5, 0.75, 1.125, 1.6875]),
        ({"first_delay": 10, "factor": 10, "max_delay": 500}, [10, 100, 500, 500]),
    ],
    ids=["default", "tripled", "fractions", "bounded"],
)
def test_delays_grow_from_the_first_one(settings, expected):
    assert delays(RetryPolicy(**settings), 4) == expected


def test_a_message_is_back_after_the_first_delay():
    clock = ManualClock()
    queue = Queue(retry=RetryPolicy(first_delay=5, factor=4), clock=clock)
    queue.put("a")
    queue.nack(queue.take().receipt)
    clock.advance(4.5)
    assert queue.take() is None
    clock.advance(0.5)
    assert queue.take().attempt == 2


def test_all_attempts_of_a_policy():
    clock = ManualClock()
    queue = Queue(retry=RetryPolicy(max_attempts=4, first_delay=2, factor=3), clock=clock)
    queue.put("a")
    times = []
    while not queue.dead_letters:
        delivery = queue.take()
        if delivery is None:
            clock.advance(1)
        else:
            times.append(clock())
            queue.nack(delivery.receipt)
    assert times == [0, 2, 8, 26]


@pytest.mark.parametrize("factor", [1, 1.0])
def test_delays_that_do_not_grow(factor):
    assert delays(RetryPolicy(first_delay=7, factor=factor), 3) == [7, 7, 7]


def test_no_delay_is_longer_than_the_bound():
    assert delays(RetryPolicy(first_delay=90, factor=2, max_delay=60), 3) == [60, 60, 60]
    assert RetryPolicy(factor=3.5, max_delay=60).delay(4000) == 60


def test_no_delay_at_all():
    assert delays(RetryPolicy(first_delay=0, factor=5), 3) == [0, 0, 0]
