import pytest

from waypoint import Query, Router


@pytest.fixture
def router():
    router = Router()
    router.add("/find", "find", name="find")
    router.add("/tags/<tag>", "tag", name="tag")
    return router


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("q=green+tea", "green tea"),
        ("q=+green++tea+", " green  tea "),
        ("q=+", " "),
        ("q=a+b%20c", "a b c"),
        ("q=1+%2B+1", "1 + 1"),
        ("q=%2B+", "+ "),
        ("q=caf%C3%A9+noir", "caf\u00e9 noir"),
    ],
    ids=["one", "many", "alone", "mixed", "sum", "end", "utf8"],
)
def test_pluses_are_blanks(text, value):
    assert Query.parse(text).get("q") == value


def test_names_have_blanks_too():
    query = Query.parse("first+name=ann&last+name=lee&a+b+c")
    assert list(query) == [("first name", "ann"), ("last name", "lee"), ("a b c", "")]


@pytest.mark.parametrize(
    "text",
    ["green tea", "a b c d", " x ", "1 + 1", "a+b c"],
    ids=["two", "four", "outside", "sum", "both"],
)
def test_what_is_written_is_read_again(text):
    query = Query([("q", text), (text, "x")])
    assert Query.parse(str(query)) == query


def test_blanks_that_are_not_escaped_stay_blanks():
    assert Query.parse("q=green tea").get("q") == "green tea"


@pytest.mark.parametrize("text", [" ", "green tea", "x y+z"], ids=["blank", "two", "plus"])
def test_reversing_and_resolving_are_inverse(router, text):
    url = router.reverse("find", query={"q": text, "tag": [text, "x"]})
    query = router.resolve(url).query
    assert query.get("q") == text
    assert query.all("tag") == [text, "x"]


def test_every_occurrence_of_a_name(router):
    query = router.resolve("/find?t=a+b&t=c%20d&t=e%2Bf#g+h").query
    assert query.all("t") == ["a b", "c d", "e+f"]


@pytest.mark.parametrize("text", ["c%2B%2B", "%2B", "a%2Bb"], ids=["end", "alone", "inside"])
def test_an_escaped_plus_is_a_plus(text):
    assert Query.parse(f"q={text}").get("q") == text.replace("%2B", "+")


def test_an_escaped_blank_is_a_blank():
    assert list(Query.parse("a%20b=c%20d")) == [("a b", "c d")]


def test_a_plus_in_a_path_is_a_plus(router):
    assert router.resolve("/tags/c++").params == {"tag": "c++"}
    assert router.resolve("/tags/a%20b").params == {"tag": "a b"}
    assert router.reverse("tag", {"tag": "c++ x"}) == "/tags/c++%20x"
