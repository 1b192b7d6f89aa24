import pytest

from hoard import FileStore, ManualClock, MemoryCache, TieredCache, cached, text_key


class Machine:
    """A folder and the two clocks of a computer, which differ and advance together."""

    def __init__(self, folder, up_for=50.0, today=1_700_000_000.0):
        self.folder = folder
        self.uptime = ManualClock(up_for)
        self.wall = ManualClock(today)

    def advance(self, seconds):
        self.uptime.advance(seconds)
        self.wall.advance(seconds)

    def process(self, memory_ttl=None, max_entries=128):
        memory = MemoryCache(max_entries, ttl=memory_ttl, clock=self.uptime)
        return TieredCache(memory, FileStore(self.folder, clock=self.wall))


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_a_copy_is_gone_when_its_original_expires(machine):
    machine.process().set("a", 1, ttl=600)
    machine.advance(400)
    reader = machine.process()
    assert reader.get("a") == 1
    machine.advance(199)
    assert reader.get("a") == 1
    machine.advance(1)
    assert reader.get("a") is None
    assert "a" not in reader


def test_a_warmed_copy_is_gone_when_its_original_expires(machine):
    writer = machine.process()
    writer.set("a", 1, ttl=600)
    writer.set("b", 2, ttl=900)
    reader = machine.process()
    assert reader.warm() == 2
    machine.advance(600)
    assert reader.get("a") is None
    assert reader.get("b") == 2


def test_a_copy_obeys_the_lifetime_of_the_memory(machine):
    writer, reader = machine.process(), machine.process(memory_ttl=30)
    writer.set("rate", 1.08)
    assert reader.get("rate") == 1.08
    writer.set("rate", 1.09)
    machine.advance(29)
    assert reader.get("rate") == 1.08
    machine.advance(1)
    assert reader.get("rate") == 1.09


def test_a_warmed_copy_obeys_the_lifetime_of_the_memory(machine):
    writer, reader = machine.process(), machine.process(memory_ttl=30)
    writer.set("rate", 1.08, ttl=3600)
    reader.warm()
    writer.set("rate", 1.09, ttl=3600)
    machine.advance(30)
    assert reader.get("rate") == 1.09


def test_the_shorter_lifetime_counts(machine):
    writer, reader = machine.process(), machine.process(memory_ttl=30)
    writer.set("a", 1, ttl=12)
    assert reader.get("a") == 1
    machine.advance(11)
    assert "a" in reader.memory
    machine.advance(1)
    assert "a" not in reader.memory


def test_a_computer_that_is_up_for_long_keeps_copies_too(tmp_path):
    machine = Machine(tmp_path, up_for=5_000_000.0, today=1_000_000.0)
    machine.process().set("a", 1, ttl=600)
    reader = machine.process()
    assert reader.get("a") == 1
    assert reader.memory.get("a") == 1
    assert reader.warm() == 1
    assert len(reader.memory) == 1


def test_results_on_disk_are_computed_again_when_they_expire(machine):
    calls = []

    def price(number):
        calls.append(number)
        return number * 1.5

    cached(machine.process(), ttl=60, key=text_key("price"))(price)(4)
    other = cached(machine.process(), ttl=60, key=text_key("price"))(price)
    assert other(4) == 6.0
    machine.advance(60)
    assert other(4) == 6.0
    assert calls == [4, 4]


def test_copies_without_any_lifetime_stay(machine):
    machine.process().set("a", 1)
    reader = machine.process()
    assert reader.get("a") == 1
    machine.advance(10_000_000)
    assert reader.memory.get("a") == 1


def test_copies_are_bounded_by_the_size_of_the_memory(machine):
    writer = machine.process()
    for number in range(5):
        writer.set(f"key {number}", number)
    reader = machine.process(max_entries=2)
    assert reader.warm() == 2
    assert len(reader.memory) == 2


def test_reading_does_not_extend_a_lifetime(machine):
    machine.process().set("a", 1, ttl=60)
    reader = machine.process()
    for _ in range(6):
        assert reader.store.get("a") == 1
        machine.advance(10)
    assert reader.store.get("a") is None


def test_writes_of_the_same_process_are_seen_at_once(machine):
    cache = machine.process(memory_ttl=30)
    cache.set("a", 1)
    cache.memory.clear()
    assert cache.get("a") == 1
    cache.set("a", 2)
    assert cache.get("a") == 2
