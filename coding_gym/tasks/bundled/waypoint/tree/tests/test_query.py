import pytest

from waypoint import Query, Router


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", []),
        ("a=1&b=2&a=3", [("a", "1"), ("b", "2"), ("a", "3")]),
        ("a&b=&&=c", [("a", ""), ("b", ""), ("", "c")]),
        ("q=a+b%2Bc&r=x=y", [("q", "a b+c"), ("r", "x=y")]),
        ("caf%C3%A9=%26", [("caf\u00e9", "&")]),
    ],
    ids=["none", "order", "blank", "plus", "utf8"],
)
def test_parsing(text, fields):
    query = Query.parse(text)
    assert list(query) == fields
    assert Query.parse(str(query)) == query


def test_values_by_name():
    query = Query.parse("a=1&b=2&a=3")
    assert query.get("a") == "3"
    assert query.all("a") == ["1", "3"]
    assert query.get("c") is None
    assert query.get("c", "none") == "none"
    assert len(query) == 3


def test_a_plus_stands_for_a_blank():
    assert Query.parse("q=green+tea").get("q") == "green tea"
    assert Query.parse("first+name=ann").get("first name") == "ann"
    assert Query.parse("q=c%2B%2B+17").get("q") == "c++ 17"


def test_resolving_takes_the_query_apart_and_drops_the_fragment():
    router = Router()
    router.add("/find", "find")
    match = router.resolve("/find?q=a%3Fb#top?x=1")
    assert list(match.query) == [("q", "a?b")]


def test_reversing_appends_a_query():
    router = Router()
    router.add("/find", "find", name="find")
    query = {"q": "a&b c", "page": 2, "tag": ["x", "y"], "sort": None}
    assert router.reverse("find", query=query) == "/find?q=a%26b+c&page=2&tag=x&tag=y"
    assert router.reverse("find", query={"sort": None}) == "/find"


def test_query_values_may_be_zero():
    router = Router()
    router.add("/find", "find", name="find")
    assert router.reverse("find", query={"page": 0}) == "/find?page=0"
