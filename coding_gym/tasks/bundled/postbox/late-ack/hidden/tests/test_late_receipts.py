import pytest

from postbox import Broker, ManualClock, Queue, RetryPolicy, StaleReceipt, Worker


@pytest.fixture
def clock():
    return ManualClock(500)


def outcome(call, *arguments):
    try:
        call(*arguments)
    except StaleReceipt:
        return "stale"
    return "fine"


@pytest.fixture
def taken_over(clock):
    """A queue whose only message was taken again when its first lease had ended."""
    queue = Queue(lease=30, retry=RetryPolicy(max_attempts=5, first_delay=100), clock=clock)
    queue.put("a")
    late = queue.take()
    clock.advance(30)
    return queue, late.receipt, queue.take().receipt


def test_a_late_ack_leaves_the_message_to_its_new_owner(taken_over, clock):
    queue, late, current = taken_over
    assert outcome(queue.ack, late) == "stale"
    assert len(queue) == 1
    assert outcome(queue.ack, current) == "fine"
    assert len(queue) == 0


def test_a_late_nack_leaves_the_message_to_its_new_owner(taken_over, clock):
    queue, late, current = taken_over
    assert outcome(queue.nack, late, "too late") == "stale"
    clock.advance(29)
    assert queue.take() is None
    assert outcome(queue.ack, current) == "fine"
    assert queue.dead_letters == []


def test_a_late_extension_does_not_help(taken_over, clock):
    queue, late, _ = taken_over
    assert outcome(queue.extend, late, 1000) == "stale"
    clock.advance(30)
    assert queue.take().attempt == 3


def test_receipts_differ_between_deliveries(clock):
    queue = Queue(lease=1, retry=RetryPolicy(max_attempts=9), clock=clock)
    queue.put("a")
    queue.put("b")
    receipts = []
    for _ in range(4):
        receipts += [queue.take().receipt, queue.take().receipt]
        clock.advance(1)
    assert len(set(receipts)) == 8


def test_a_lease_that_has_ended_counts_even_if_nobody_has_the_message(clock):
    queue = Queue(lease=30, clock=clock)
    queue.put("a")
    receipt = queue.take().receipt
    clock.advance(30)
    calls = [(queue.ack, receipt), (queue.nack, receipt), (queue.extend, receipt, 60)]
    assert [outcome(*call) for call in calls] == ["stale"] * 3
    assert queue.take().attempt == 2


def test_a_receipt_is_good_until_the_very_end(clock):
    queue = Queue(lease=30, clock=clock)
    queue.put("a")
    receipt = queue.take().receipt
    clock.advance(29.5)
    assert outcome(queue.extend, receipt, 10) == "fine"
    clock.advance(9.5)
    assert outcome(queue.ack, receipt) == "fine"


def test_a_late_receipt_after_a_nack(clock):
    queue = Queue(lease=30, retry=RetryPolicy(first_delay=0), clock=clock)
    queue.put("a")
    first = queue.take().receipt
    queue.nack(first)
    second = queue.take().receipt
    assert outcome(queue.ack, first) == "stale"
    assert outcome(queue.ack, second) == "fine"


def test_a_worker_that_was_too_slow_goes_on(clock):
    broker = Broker(clock=clock)
    queue = broker.queue("mail", lease=10)
    broker.queue("log")
    broker.subscribe("done", "log")
    queue.put("slow")
    queue.put("quick")
    calls = []

    def handler(body, broker):
        calls.append(body)
        broker.publish("done", f"{body} {len(calls)}")
        if len(calls) == 1:
            clock.advance(10)

    assert Worker(broker, "mail", handler).run() == 3
    assert calls == ["slow", "slow", "quick"]
    log = broker.queue("log")
    assert [log.take().body, log.take().body, log.take()] == ["slow 2", "quick 3", None]


def test_a_worker_that_was_too_slow_and_failed_goes_on(clock):
    broker = Broker(clock=clock)
    queue = broker.queue("mail", lease=10, retry=RetryPolicy(max_attempts=2, first_delay=0))
    queue.put("a")

    def handler(body, _):
        clock.advance(10)
        raise RuntimeError(body)

    assert Worker(broker, "mail", handler).run(limit=5) == 2
    assert [letter.reason for letter in queue.dead_letters] == ["the lease has ended"] * 1


def test_a_worker_whose_message_was_taken_over_leaves_it_alone(clock):
    broker = Broker(clock=clock)
    queue = broker.queue("mail", lease=10)
    queue.put("a")
    others = []

    def handler(body, _):
        clock.advance(10)
        others.append(queue.take())

    assert Worker(broker, "mail", handler).step() is True
    assert len(queue) == 1
    assert outcome(queue.ack, others[0].receipt) == "fine"
    assert len(queue) == 0
