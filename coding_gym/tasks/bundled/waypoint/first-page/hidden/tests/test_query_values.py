from decimal import Decimal

import pytest

from waypoint import Router


@pytest.fixture
def router():
    router = Router()
    router.add("/find", "find", name="find")
    router.add("/day/<int:n>", "day", name="day")
    return router


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.0, "0.0"), (Decimal(0), "0"), (False, "False"), ("", "")],
    ids=["int", "float", "decimal", "bool", "text"],
)
def test_a_value_that_is_given_is_written(router, value, text):
    url = router.reverse("find", query={"x": value})
    assert url == f"/find?x={text}"
    assert router.resolve(url).query.get("x", "nothing") == text


@pytest.mark.parametrize("sequence", [list, tuple])
def test_lists_keep_all_their_values(router, sequence):
    url = router.reverse("find", query={"n": sequence([2, 1, 0]), "t": sequence(["", "a"])})
    assert url == "/find?n=2&n=1&n=0&t=&t=a"


def test_only_none_is_left_out_of_lists(router):
    url = router.reverse("find", query={"n": [None, 0, None, ""], "m": [None]})
    assert url == "/find?n=0&n="


def test_every_page_has_a_url_of_its_own(router):
    urls = [router.reverse("find", query={"q": "x", "page": page}) for page in range(3)]
    assert urls == ["/find?q=x&page=0", "/find?q=x&page=1", "/find?q=x&page=2"]


def test_mounted_routes_with_parameters(router):
    site = Router()
    site.mount("/cal", router, namespace="cal")
    url = site.reverse("cal:day", {"n": 0}, query={"offset": 0, "note": ""})
    assert url == "/cal/day/0?offset=0&note="
    assert list(site.resolve(url).query) == [("offset", "0"), ("note", "")]


def test_none_and_empty_lists_are_left_out(router):
    query = {"a": None, "b": [], "c": (), "d": "x", "e": [None, "y"]}
    assert router.reverse("find", query=query) == "/find?d=x&e=y"
    assert router.reverse("find", query={"a": None, "b": []}) == "/find"
    assert router.reverse("find", query={}) == "/find"
