import pytest

from hoard import ManualClock, MemoryCache


def test_keeps_what_it_is_given():
    cache = MemoryCache()
    cache.set("a", 1)
    cache.set(("b", 2), None)
    assert cache.get("a") == 1
    assert cache.get(("b", 2), "default") is None
    assert cache.get("c", "default") == "default"


def test_drops_the_least_recently_used():
    cache = MemoryCache(max_entries=2)
    cache.set("a", 1)
    cache.set("b", 2)
    cache.get("a")
    cache.set("c", 3)
    assert "a" in cache
    assert "b" not in cache
    assert cache.stats.evictions == 1


def test_asking_whether_it_is_there_is_not_a_use():
    cache = MemoryCache(max_entries=2)
    cache.set("a", 1)
    cache.set("b", 2)
    assert "a" in cache
    cache.set("c", 3)
    assert "a" not in cache


def test_writing_again_is_a_use_and_takes_no_room():
    cache = MemoryCache(max_entries=2)
    cache.set("a", 1)
    cache.set("b", 2)
    cache.set("a", 10)
    cache.set("c", 3)
    assert cache.get("a") == 10
    assert len(cache) == 2


def test_expires_at_the_deadline_and_not_before():
    clock = ManualClock()
    cache = MemoryCache(ttl=10, clock=clock)
    cache.set("a", 1)
    clock.advance(9.5)
    assert cache.get("a") == 1
    clock.advance(0.5)
    assert "a" not in cache
    assert cache.get("a") is None
    assert len(cache) == 0


def test_one_entry_may_have_a_lifetime_of_its_own():
    clock = ManualClock()
    cache = MemoryCache(ttl=10, clock=clock)
    cache.set("short", 1, ttl=5)
    cache.set("long", 2, ttl=50)
    clock.advance(10)
    assert "short" not in cache
    assert cache.get("long") == 2


def test_expired_entries_go_before_live_ones():
    clock = ManualClock()
    cache = MemoryCache(max_entries=2, clock=clock)
    cache.set("live", 1)
    cache.set("dead", 2, ttl=5)
    clock.advance(5)
    cache.set("new", 3)
    assert cache.get("live") == 1
    assert cache.stats.evictions == 0


def test_deleting_says_whether_there_was_something():
    clock = ManualClock()
    cache = MemoryCache(ttl=10, clock=clock)
    cache.set("a", 1)
    assert cache.delete("a")
    assert not cache.delete("a")
    cache.set("a", 1)
    clock.advance(10)
    assert not cache.delete("a")


def test_counts_hits_and_misses():
    cache = MemoryCache()
    cache.set("a", 1)
    cache.get("a")
    cache.get("b")
    assert (cache.stats.hits, cache.stats.misses) == (1, 1)


def test_refuses_bounds_that_are_not_positive():
    with pytest.raises(ValueError, match="max_entries"):
        MemoryCache(max_entries=0)
    with pytest.raises(ValueError, match="ttl"):
        MemoryCache(ttl=0)
