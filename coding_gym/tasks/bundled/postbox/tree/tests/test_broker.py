import pytest

from postbox import Broker, ManualClock, RetryPolicy, UnknownQueue, Worker


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def broker(clock):
    broker = Broker(clock=clock, remember=60)
    for name in ("mail", "stock"):
        broker.queue(name, retry=RetryPolicy(first_delay=0))
        broker.subscribe("orders", name)
    return broker


def bodies(broker, name):
    found = []
    Worker(broker, name, lambda body, _: found.append(body)).run()
    return found


def test_all_subscribers_get_a_message(broker):
    broker.publish("orders", {"number": 1})
    broker.publish("other", {"number": 2})
    assert bodies(broker, "mail") == [{"number": 1}]
    assert bodies(broker, "stock") == [{"number": 1}]


def test_subscribing_twice_changes_nothing(broker):
    broker.subscribe("orders", "mail")
    broker.publish("orders", 1)
    assert bodies(broker, "mail") == [1]


def test_queues_have_to_be_there(broker):
    with pytest.raises(UnknownQueue):
        broker.subscribe("orders", "nowhere")
    with pytest.raises(UnknownQueue):
        Worker(broker, "nowhere", print)
    assert broker.queue("mail") is broker.existing("mail")


def test_priorities_and_delays_are_passed_on(broker, clock):
    broker.publish("orders", 1)
    broker.publish("orders", 2, priority=1)
    broker.publish("orders", 3, delay=5)
    assert bodies(broker, "mail") == [2, 1]
    clock.advance(5)
    assert bodies(broker, "mail") == [3]


def test_keys_are_remembered_for_a_while(broker, clock):
    for number in range(3):
        broker.publish("orders", number, key="k")
    broker.publish("orders", "other", key="l")
    broker.publish("orders", "none")
    assert bodies(broker, "mail") == [0, "other", "none"]
    clock.advance(60)
    broker.publish("orders", "again", key="k")
    assert bodies(broker, "mail") == ["again"]


def test_outboxes_hold_messages_back(broker):
    with broker.outbox():
        broker.publish("orders", 1)
        broker.publish("orders", 2)
        assert len(broker.queue("mail")) == 0
    assert bodies(broker, "mail") == [1, 2]


def test_outboxes_forget_when_there_is_an_exception(broker):
    with pytest.raises(RuntimeError), broker.outbox():
        broker.publish("orders", 1)
        raise RuntimeError
    broker.publish("orders", 2)
    assert bodies(broker, "mail") == [2]


def test_workers_try_again(broker):
    calls = []

    def handler(body, _):
        calls.append(body)
        if len(calls) < 3:
            raise RuntimeError("not yet")

    broker.publish("orders", "a")
    assert Worker(broker, "mail", handler).run() == 3
    assert calls == ["a"] * 3
    assert broker.queue("mail").dead_letters == []


def test_workers_give_up(broker):
    def handler(body, _):
        raise KeyError(body)

    broker.publish("orders", "a")
    Worker(broker, "mail", handler).run()
    (letter,) = broker.queue("mail").dead_letters
    assert (letter.body, letter.attempts, letter.reason) == ("a", 3, "KeyError: 'a'")


def test_what_a_failing_handler_publishes_is_forgotten(broker):
    broker.queue("log")
    broker.subscribe("done", "log")
    calls = []

    def handler(body, broker):
        broker.publish("done", body)
        calls.append(body)
        if len(calls) == 1:
            raise RuntimeError

    broker.publish("orders", "a")
    Worker(broker, "mail", handler).run()
    assert bodies(broker, "log") == ["a"]


def test_workers_stop_at_their_limit(broker):
    for number in range(5):
        broker.publish("orders", number)
    worker = Worker(broker, "mail", lambda body, _: None)
    assert worker.run(limit=2) == 2
    assert len(broker.queue("mail")) == 3
    assert worker.run() == 3
