from contextlib import suppress

import pytest

from postbox import Broker, ManualClock, RetryPolicy, Worker


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def broker(clock):
    broker = Broker(clock=clock, remember=60)
    broker.queue("orders", retry=RetryPolicy(max_attempts=4, first_delay=0))
    broker.queue("bills")
    broker.subscribe("bills", "bills")
    return broker


def waiting(broker, name="bills"):
    """The bodies that wait in a queue, in their order; they are taken out."""
    queue = broker.queue(name)
    found = []
    while (delivery := queue.take()) is not None:
        found.append(delivery.body)
        queue.ack(delivery.receipt)
    return found


def test_a_retry_sends_what_the_failed_attempt_could_not(broker):
    calls = []

    def handler(number, broker):
        broker.publish("bills", f"bill {number}", key=f"bill-{number}")
        calls.append(number)
        if len(calls) < 3:
            raise ConnectionError

    broker.queue("orders").put(17)
    Worker(broker, "orders", handler).run()
    assert calls == [17, 17, 17]
    assert waiting(broker) == ["bill 17"]


def test_keys_of_a_failed_outbox_are_free(broker):
    with suppress(ValueError), broker.outbox():
        broker.publish("bills", 1, key="k")
        raise ValueError
    broker.publish("bills", 2, key="k")
    broker.publish("bills", 3, key="k")
    assert waiting(broker) == [2]


def test_a_key_is_sent_once_from_one_outbox(broker):
    with broker.outbox():
        for number in range(3):
            broker.publish("bills", number, key="k")
        broker.publish("bills", 9, key="l")
    assert waiting(broker) == [0, 9]


def test_what_was_sent_meanwhile_is_not_sent_again(broker):
    with broker.outbox():
        broker.publish("bills", "first", key="k")
    with broker.outbox():
        broker.publish("bills", "second", key="k")
        broker.publish("bills", "third", key="l")
    assert waiting(broker) == ["first", "third"]


def test_an_inner_outbox_waits_for_the_outer_one(broker):
    with broker.outbox():
        broker.publish("bills", 1)
        with broker.outbox():
            broker.publish("bills", 2)
        held = waiting(broker)
        broker.publish("bills", 3)
    assert (held, waiting(broker)) == ([], [1, 2, 3])


def test_an_inner_outbox_is_forgotten_with_the_outer_one(broker):
    with suppress(ValueError), broker.outbox():
        with broker.outbox():
            broker.publish("bills", 1, key="k")
        raise ValueError
    assert waiting(broker) == []
    broker.publish("bills", 2, key="k")
    assert waiting(broker) == [2]


def test_an_inner_outbox_may_fail_alone(broker):
    with broker.outbox():
        broker.publish("bills", 1, key="a")
        with suppress(ValueError), broker.outbox():
            broker.publish("bills", 2, key="b")
            raise ValueError
        broker.publish("bills", 3, key="b")
    assert waiting(broker) == [1, 3]


def test_three_outboxes_deep(broker):
    with broker.outbox():
        with broker.outbox():
            with broker.outbox():
                broker.publish("bills", 1)
            broker.publish("bills", 2)
        held = waiting(broker)
    assert (held, waiting(broker)) == ([], [1, 2])


def test_handlers_with_outboxes_of_their_own_send_nothing_when_they_fail(broker):
    attempts = []

    def handler(number, broker):
        attempts.append(number)
        with broker.outbox():
            broker.publish("bills", f"bill {number}, attempt {len(attempts)}")
        if len(attempts) == 1:
            raise RuntimeError

    broker.queue("orders").put(5)
    Worker(broker, "orders", handler).run()
    assert waiting(broker) == ["bill 5, attempt 2"]


def test_keys_are_remembered_from_the_moment_of_sending(broker, clock):
    with broker.outbox():
        broker.publish("bills", 1, key="k")
        clock.advance(50)
    clock.advance(59)
    broker.publish("bills", 2, key="k")
    assert waiting(broker) == [1]
    clock.advance(1)
    broker.publish("bills", 3, key="k")
    assert waiting(broker) == [3]


def test_dead_messages_leave_nothing(broker):
    def handler(number, broker):
        broker.publish("bills", number, key="k")
        raise RuntimeError

    broker.queue("orders").put(1)
    Worker(broker, "orders", handler).run()
    assert len(broker.queue("orders").dead_letters) == 1
    assert waiting(broker) == []


def test_the_same_key_in_two_topics(broker):
    broker.queue("log")
    broker.subscribe("log", "log")
    with broker.outbox():
        broker.publish("bills", 1, key="k")
        broker.publish("log", 2, key="k")
    assert (waiting(broker), waiting(broker, "log")) == ([1], [2])
