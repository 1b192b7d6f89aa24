import pytest

from postbox import Broker, ManualClock, Queue, RetryPolicy, Worker


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def broker(clock):
    broker = Broker(clock=clock)
    for name in ("mail", "stock"):
        broker.queue(name, retry=RetryPolicy(max_attempts=2, first_delay=0))
        broker.subscribe("orders", name)
    return broker


def bodies(broker, name):
    found = []
    Worker(broker, name, lambda body, _: found.append(body)).run()
    return found


def test_subscribers_do_not_see_what_others_do(broker):
    def handler(order, _):
        order["lines"].pop()
        order["sent"] = True

    broker.publish("orders", {"number": 1, "lines": ["tea", "milk"]})
    Worker(broker, "mail", handler).run()
    assert bodies(broker, "stock") == [{"number": 1, "lines": ["tea", "milk"]}]


def test_a_retry_starts_from_the_same_body(broker):
    seen = []

    def handler(order, _):
        seen.append(repr(order))
        order["lines"].append("gift")
        if len(seen) == 1:
            raise RuntimeError

    broker.publish("orders", {"lines": ["tea"]})
    Worker(broker, "mail", handler).run()
    assert seen == ["{'lines': ['tea']}"] * 2


def test_dead_letters_hold_what_was_published(broker):
    def handler(order, _):
        order.clear()
        raise RuntimeError

    broker.publish("orders", {"number": 7})
    Worker(broker, "mail", handler).run()
    assert [letter.body for letter in broker.queue("mail").dead_letters] == [{"number": 7}]


def test_dead_letters_cannot_be_spoilt(clock):
    queue = Queue(retry=RetryPolicy(max_attempts=1), clock=clock)
    queue.put(["a"])
    queue.nack(queue.take().receipt)
    queue.dead_letters[0].body.append("b")
    queue.dead_letters.clear()
    assert [letter.body for letter in queue.dead_letters] == [["a"]]


def test_the_sender_may_go_on_using_the_body(clock):
    queue = Queue(clock=clock)
    row = {"number": 0}
    for number in range(3):
        row["number"] = number
        queue.put(row)
    assert [queue.take().body for _ in range(3)] == [{"number": number} for number in range(3)]


def test_a_body_in_an_outbox_is_what_it_was_when_it_was_published(broker):
    row = {"tags": []}
    with broker.outbox():
        for tag in ("a", "b"):
            row["tags"].append(tag)
            broker.publish("orders", row)
    assert bodies(broker, "mail") == [{"tags": ["a"]}, {"tags": ["a", "b"]}]


def test_a_lease_that_ended_does_not_leave_a_spoilt_body(clock):
    queue = Queue(lease=10, clock=clock)
    queue.put({"steps": [1]})
    late = queue.take()
    late.body["steps"].append(2)
    clock.advance(10)
    assert queue.take().body == {"steps": [1]}
    late.body["steps"].append(3)
    clock.advance(10)
    assert queue.take().body == {"steps": [1]}


def test_a_handler_may_publish_its_own_body(broker):
    broker.queue("log")
    broker.subscribe("log", "log")

    def handler(order, broker):
        order["step"] = "received"
        broker.publish("log", order)
        order["step"] = "sent"
        broker.publish("log", order)

    broker.publish("orders", {})
    Worker(broker, "mail", handler).run()
    assert bodies(broker, "log") == [{"step": "received"}, {"step": "sent"}]


def test_texts_and_numbers_are_passed_on(broker):
    broker.publish("orders", "a")
    broker.publish("orders", (1, None))
    assert bodies(broker, "mail") == ["a", (1, None)]
