from hoard import FileStore, ManualClock, MemoryCache, TieredCache, argument_key, cached, text_key


def test_a_function_is_called_once_per_arguments():
    calls = []

    @cached()
    def double(number, *, times=1):
        """Twice as much."""
        calls.append((number, times))
        return number * 2 * times

    assert [double(1), double(1), double(2), double(1, times=3)] == [2, 2, 4, 6]
    assert calls == [(1, 1), (2, 1), (1, 3)]
    assert double.__doc__ == "Twice as much."


def test_functions_do_not_share_their_default_cache():
    @cached()
    def one(number):
        return number + 1

    @cached()
    def two(number):
        return number + 2

    assert (one(1), two(1)) == (2, 3)


def test_none_is_a_result():
    calls = []

    @cached()
    def nothing():
        calls.append("called")

    nothing()
    nothing()
    assert calls == ["called"]


def test_results_expire():
    clock = ManualClock()
    results = iter(range(10))

    @cached(MemoryCache(clock=clock), ttl=5)
    def following():
        return next(results)

    assert [following(), following()] == [0, 0]
    clock.advance(5)
    assert following() == 1


def test_one_result_can_be_forgotten():
    results = iter(range(10))

    @cached()
    def following(name):
        return next(results)

    assert [following("a"), following("b")] == [0, 1]
    assert following.forget("a")
    assert [following("a"), following("b")] == [2, 1]


def test_keys_do_not_depend_on_the_order_of_keywords():
    assert argument_key((1,), {"a": 2, "b": 3}) == argument_key((1,), {"b": 3, "a": 2})
    assert argument_key((1, "a", 2), {}) != argument_key((1,), {"a": 2})
    assert text_key("f")((1,), {"b": 3, "a": 2}) == 'f:[1, {"a": 2, "b": 3}]'


def test_results_can_live_on_disk(tmp_path):
    calls = []

    def price(number):
        calls.append(number)
        return number * 1.5

    for _ in range(2):
        cache = TieredCache(MemoryCache(), FileStore(tmp_path))
        assert cached(cache, key=text_key("price"))(price)(4) == 6.0
    assert calls == [4]
