import pytest

from hoard import FileStore, ManualClock


def test_values_survive_a_restart(tmp_path):
    FileStore(tmp_path).set("naïve/key", {"price": [1, 2.5, None]})
    assert FileStore(tmp_path).get("naïve/key") == {"price": [1, 2.5, None]}


def test_makes_its_folder(tmp_path):
    store = FileStore(tmp_path / "deep" / "folder")
    store.set("a", 1)
    assert store.get("a") == 1


def test_lifetimes_survive_a_restart(tmp_path):
    FileStore(tmp_path, ttl=60, clock=ManualClock(1000)).set("a", 1)
    assert FileStore(tmp_path, clock=ManualClock(1059)).get("a") == 1
    assert FileStore(tmp_path, clock=ManualClock(1060)).get("a") is None


def test_one_entry_may_have_a_lifetime_of_its_own(tmp_path):
    clock = ManualClock()
    store = FileStore(tmp_path, ttl=60, clock=clock)
    store.set("a", 1, ttl=5)
    clock.advance(5)
    assert store.get("a", "gone") == "gone"
    assert list(tmp_path.iterdir()) == []


def test_keys_do_not_collide(tmp_path):
    store = FileStore(tmp_path)
    keys = ["a/b", "a_b", "A/B", "a/b "]
    for key in keys:
        store.set(key, key)
    assert [store.get(key) for key in keys] == keys


def test_lists_live_entries(tmp_path):
    clock = ManualClock()
    store = FileStore(tmp_path, clock=clock)
    store.set("a", 1)
    store.set("b", 2, ttl=5)
    store.set("c", 3, ttl=6)
    clock.advance(5)
    assert {key: entry.value for key, entry in store.entries()} == {"a": 1, "c": 3}
    assert store.purge() == 1


def test_damaged_files_hold_nothing(tmp_path):
    store = FileStore(tmp_path)
    store.set("a", 1)
    (path,) = tmp_path.iterdir()
    path.write_text('{"key": "a", "val', encoding="utf-8")
    assert store.get("a") is None
    assert list(store.entries()) == []
    assert store.purge() == 1


def test_a_value_that_cannot_be_written_leaves_the_old_one(tmp_path):
    store = FileStore(tmp_path)
    store.set("a", 1)
    with pytest.raises(TypeError):
        store.set("a", object())
    assert store.get("a") == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_deletes_and_clears(tmp_path):
    store = FileStore(tmp_path)
    store.set("a", 1)
    store.set("b", 2)
    assert store.delete("a")
    assert not store.delete("a")
    store.clear()
    assert store.get("b") is None
