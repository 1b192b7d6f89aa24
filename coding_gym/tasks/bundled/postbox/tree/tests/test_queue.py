import pytest

from postbox import DeadLetter, ManualClock, Queue, RetryPolicy, StaleReceipt


@pytest.fixture
def clock():
    return ManualClock(1000)


def taken(queue):
    """The bodies that can be taken now, all of which are acknowledged."""
    bodies = []
    while (delivery := queue.take()) is not None:
        bodies.append(delivery.body)
        queue.ack(delivery.receipt)
    return bodies


def test_messages_are_taken_in_order(clock):
    queue = Queue(clock=clock)
    for body in "abc":
        queue.put(body)
    assert len(queue) == 3
    assert taken(queue) == ["a", "b", "c"]
    assert len(queue) == 0


def test_higher_priorities_go_first(clock):
    queue = Queue(clock=clock)
    for body, priority in (("a", 0), ("b", 5), ("c", -1), ("d", 5)):
        queue.put(body, priority=priority)
    assert taken(queue) == ["b", "d", "a", "c"]


def test_delayed_messages_wait(clock):
    queue = Queue(clock=clock)
    queue.put("later", delay=10)
    queue.put("now")
    assert taken(queue) == ["now"]
    clock.advance(9.5)
    assert queue.take() is None
    clock.advance(0.5)
    assert taken(queue) == ["later"]


def test_a_leased_message_is_nobody_elses(clock):
    queue = Queue(lease=30, clock=clock)
    queue.put("a")
    assert queue.take().attempt == 1
    clock.advance(29)
    assert queue.take() is None
    assert len(queue) == 1


def test_a_message_comes_back_when_its_lease_ends(clock):
    queue = Queue(lease=30, clock=clock)
    queue.put("a")
    queue.put("b")
    queue.take()
    clock.advance(30)
    assert queue.take().body == "a"
    assert queue.take().body == "b"
    clock.advance(30)
    assert queue.take().attempt == 3


def test_a_lease_can_be_extended(clock):
    queue = Queue(lease=30, clock=clock)
    queue.put("a")
    receipt = queue.take().receipt
    clock.advance(20)
    queue.extend(receipt, 60)
    clock.advance(59)
    assert queue.take() is None
    clock.advance(1)
    assert queue.take().attempt == 2


def test_failed_messages_come_back_in_their_place(clock):
    queue = Queue(retry=RetryPolicy(first_delay=0), clock=clock)
    queue.put("a")
    queue.put("b")
    queue.nack(queue.take().receipt)
    assert taken(queue) == ["a", "b"]


def test_failed_messages_wait(clock):
    queue = Queue(retry=RetryPolicy(max_attempts=9, first_delay=10, factor=1), clock=clock)
    queue.put("a")
    for attempt in range(1, 5):
        delivery = queue.take()
        assert delivery.attempt == attempt
        queue.nack(delivery.receipt)
        clock.advance(9)
        assert queue.take() is None
        clock.advance(1)


def test_messages_are_given_up_after_the_last_attempt(clock):
    queue = Queue(lease=5, retry=RetryPolicy(max_attempts=2, first_delay=0), clock=clock)
    queue.put("a")
    queue.put("b")
    for _ in range(2):
        queue.nack(queue.take().receipt, "no luck")
    assert queue.dead_letters == [DeadLetter("a", 2, "no luck")]
    for _ in range(2):
        queue.take()
        clock.advance(5)
    assert queue.dead_letters[1] == DeadLetter("b", 2, "the lease has ended")
    assert len(queue) == 0


def test_a_receipt_cannot_be_used_twice(clock):
    queue = Queue(clock=clock)
    queue.put("a")
    receipt = queue.take().receipt
    queue.ack(receipt)
    for settle in (queue.ack, queue.nack, lambda receipt: queue.extend(receipt, 1)):
        with pytest.raises(StaleReceipt):
            settle(receipt)
    with pytest.raises(StaleReceipt):
        queue.ack("made up")


def test_settings_are_checked():
    with pytest.raises(ValueError, match="lease"):
        Queue(lease=0)
    with pytest.raises(ValueError, match="max_attempts"):
        RetryPolicy(max_attempts=0)
    with pytest.raises(ValueError, match="factor"):
        RetryPolicy(factor=0.5)


def test_delays_have_a_bound():
    policy = RetryPolicy(first_delay=1, factor=2, max_delay=60)
    assert policy.delay(50) == 60
    assert policy.delay(50_000) == 60
