import pytest

from hoard import FileStore, ManualClock, MemoryCache, TieredCache


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def cache(tmp_path, clock):
    return TieredCache(MemoryCache(max_entries=3, clock=clock), FileStore(tmp_path, clock=clock))


def test_writes_go_to_both_tiers(cache):
    cache.set("a", 1)
    assert cache.memory.get("a") == 1
    assert cache.store.get("a") == 1


def test_memory_is_asked_first(cache):
    cache.set("a", 1)
    cache.store.set("a", 2)
    assert cache.get("a") == 1


def test_what_is_found_in_the_store_is_copied_to_memory(cache):
    cache.store.set("a", 1)
    assert cache.get("a") == 1
    assert cache.memory.get("a") == 1


def test_none_is_a_value(cache):
    cache.set("a", None)
    assert cache.get("a", "default") is None
    cache.memory.clear()
    assert cache.get("a", "default") is None
    assert cache.get("b", "default") == "default"


def test_entries_expire_in_both_tiers(cache, clock):
    cache.set("a", 1, ttl=10)
    clock.advance(10)
    assert cache.get("a") is None
    assert "a" not in cache


def test_copies_expire_with_their_originals(cache, clock):
    cache.store.set("a", 1, ttl=10)
    clock.advance(6)
    assert cache.get("a") == 1
    clock.advance(4)
    assert cache.get("a") is None


def test_deleting_takes_both_tiers(cache):
    cache.set("a", 1)
    assert cache.delete("a")
    assert "a" not in cache
    assert not cache.delete("a")


def test_warming_fills_memory_up_to_its_size(cache):
    for number in range(5):
        cache.store.set(f"key {number}", number)
    assert cache.warm() == 3
    assert len(cache.memory) == 3
    assert cache.memory.stats.evictions == 0


def test_clearing_takes_both_tiers(cache):
    cache.set("a", 1)
    cache.clear()
    assert cache.get("a") is None
