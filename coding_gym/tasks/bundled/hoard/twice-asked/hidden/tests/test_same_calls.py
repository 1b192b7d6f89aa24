import functools
from types import SimpleNamespace

import pytest

from hoard import FileStore, MemoryCache, TieredCache, cached, text_key


@pytest.fixture(params=["arguments", "text", "tiered"])
def counted(request, tmp_path):
    """Wraps a function, and lists in ``calls`` what it has been called with."""

    def wrap(function):
        calls = []

        @functools.wraps(function)
        def noting(*args, **kwargs):
            calls.append((args, kwargs))
            return function(*args, **kwargs)

        options = {
            "arguments": {},
            "text": {"cache": FileStore(tmp_path), "key": text_key("f")},
            "tiered": {
                "cache": TieredCache(MemoryCache(), FileStore(tmp_path)),
                "key": text_key("f"),
            },
        }
        wrapped = cached(**options[request.param])(noting)
        return SimpleNamespace(ask=wrapped, calls=calls)

    return wrap


def price(number, currency="EUR", *, gross=True):
    return f"{number} {currency} {gross}"


def asked(wrapped, calls):
    return [wrapped.ask(*args, **kwargs) for args, kwargs in calls]


SAME = [
    ((7,), {}),
    ((), {"number": 7}),
    ((7, "EUR"), {}),
    ((7,), {"currency": "EUR"}),
    ((), {"currency": "EUR", "number": 7}),
    ((7,), {"gross": True}),
    ((), {"gross": True, "number": 7, "currency": "EUR"}),
]


@pytest.mark.parametrize("first", range(len(SAME)))
def test_calls_that_mean_the_same_share_a_result(counted, first):
    wrapped = counted(price)
    assert asked(wrapped, [SAME[first], *SAME]) == ["7 EUR True"] * (len(SAME) + 1)
    assert wrapped.calls == [SAME[first]]


@pytest.mark.parametrize("kept", range(len(SAME)))
def test_a_result_is_forgotten_however_it_was_asked_for(counted, kept):
    for args, kwargs in SAME:
        wrapped = counted(price)
        asked(wrapped, [SAME[kept]])
        assert wrapped.ask.forget(*args, **kwargs) is True
        assert wrapped.ask.forget(*args, **kwargs) is False


def test_other_arguments_are_other_results(counted):
    wrapped = counted(price)
    calls = [
        ((8,), {}),
        ((7, "USD"), {}),
        ((7,), {"gross": False}),
        ((7, "USD"), {"gross": False}),
    ]
    expected = ["8 EUR True", "7 USD True", "7 EUR False", "7 USD False"]
    assert asked(wrapped, calls * 2) == expected * 2
    assert len(wrapped.calls) == 4


def test_one_default_may_be_given_and_another_not(counted):
    wrapped = counted(lambda a, b=2, c=3, d=4: f"{a}{b}{c}{d}")
    calls = [((1, 2, 5), {}), ((1,), {"c": 5}), ((), {"d": 4, "c": 5, "a": 1})]
    assert asked(wrapped, calls) == ["1254"] * 3
    assert asked(wrapped, [((1, 5), {}), ((1, 5, 3, 4), {}), ((1,), {"b": 5})]) == ["1534"] * 3
    assert len(wrapped.calls) == 2


def test_results_in_a_folder_are_still_found(tmp_path):
    store = FileStore(tmp_path)
    store.set("price:[4711]", "old")
    store.set('price:[4711, "USD"]', "old dollars")
    wrapped = cached(store, key=text_key("price"))(price)
    found = [wrapped(4711), wrapped(number=4711), wrapped(4711, "EUR"), wrapped(4711, "USD")]
    assert found == ["old", "old", "old", "old dollars"]
    assert wrapped(4711, currency="USD") == "old dollars"
    assert len(list(store.entries())) == 2


def test_the_function_gets_what_the_caller_gave(counted):
    wrapped = counted(price)
    asked(wrapped, [((), {"number": 1}), ((2, "EUR"), {})])
    assert wrapped.calls == [((), {"number": 1}), ((2, "EUR"), {})]


def test_whatever_the_user_types(counted):
    wrapped = counted(lambda *words, **options: f"{words} {sorted(options.items())}")
    calls = [
        (("a", "b"), {}),
        (("b", "a"), {}),
        (("a",), {"words": "b"}),
        (("a",), {"x": 1, "options": 2}),
        ((), {}),
    ]
    expected = [f"{args} {sorted(kwargs.items())}" for args, kwargs in calls]
    assert asked(wrapped, calls * 2) == expected * 2
    assert len(wrapped.calls) == len(calls)
    assert wrapped.ask("a", options=2, x=1) == expected[3]
    assert len(wrapped.calls) == len(calls)


def test_a_default_before_whatever_the_user_types(counted):
    wrapped = counted(lambda limit=10, *words: f"{limit} {words}")
    calls = [((10, "a"), {}), ((10,), {}), (("a",), {})]
    assert asked(wrapped, calls) == ["10 ('a',)", "10 ()", "a ()"]
    assert [wrapped.ask(), wrapped.ask(limit=10)] == ["10 ()"] * 2
    assert len(wrapped.calls) == 3


@pytest.mark.parametrize("options", [{}, [], [{}]], ids=["dictionary", "list", "nested"])
def test_defaults_need_not_be_hashable(options):
    calls = []

    @cached()
    def search(word, options=options):
        calls.append(word)
        return f"{word} {options}"

    assert [search("a"), search(word="a"), search("a")] == [f"a {options}"] * 3
    assert search.forget(word="a") is True
    assert calls == ["a"]


def test_defaults_that_are_equal_but_of_another_kind(tmp_path):
    @cached(FileStore(tmp_path), key=text_key("f"))
    def shown(value, flag=True):
        return f"{value} {flag}"

    assert [shown(1), shown(1, 1), shown(1, flag=1)] == ["1 True", "1 1", "1 1"]


def test_functions_of_python():
    biggest, length = cached()(max), cached()(len)
    assert [biggest(1, 3), biggest((1, 3)), biggest(3, 1), length("abc")] == [3, 3, 3, 3]
    assert [biggest.forget(1, 3), biggest.forget(1, 3)] == [True, False]


def test_parameters_that_have_no_names_for_callers():
    calls = []

    @cached()
    def joined(a=1, b=2, /):
        calls.append((a, b))
        return f"{a} {b}"

    assert [joined(), joined(1), joined(1, 2), joined(1, 5)] == ["1 2"] * 3 + ["1 5"]
    assert calls == [(1, 2), (1, 5)]


def test_calls_that_do_not_fit_are_not_kept():
    store = MemoryCache()
    wrapped = cached(store)(price)
    for args, kwargs in [
        ((), {}),
        ((1, "EUR", True), {}),
        ((1,), {"number": 1}),
        ((1,), {"net": 1}),
    ]:
        with pytest.raises(TypeError):
            wrapped(*args, **kwargs)
    assert len(store) == 0


def test_methods():
    class Shop:
        @cached()
        def price(self, number, currency="EUR"):
            return object()

    one, two = Shop(), Shop()
    assert one.price(1) is one.price(number=1, currency="EUR")
    assert one.price(1) is not two.price(1)
