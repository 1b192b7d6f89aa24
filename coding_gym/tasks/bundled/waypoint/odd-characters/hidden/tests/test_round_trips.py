import pytest

from waypoint import NoMatch, Router

ODD = {
    "slash": "AC/DC",
    "ends": "/x/",
    "only": "/",
    "question": "what?",
    "hash": "C#",
    "percent": "100%",
    "escape": "a%2Fb",
    "plus": "a+b c",
    "accent": "caf\u00e9/\u20ac",
    "separators": "a;b=c&d:e@f",
}


@pytest.fixture
def router():
    router = Router()
    router.add("/bands/<name>", "band", name="band")
    router.add("/bands/<name>/albums/<title>", "album", name="album")
    router.add("/files/<path:name>", "file", name="file")
    return router


@pytest.mark.parametrize("value", ODD.values(), ids=ODD.keys())
def test_one_parameter(router, value):
    match = router.resolve(router.reverse("band", {"name": value}))
    assert (match.endpoint, match.params) == ("band", {"name": value})


@pytest.mark.parametrize("value", ODD.values(), ids=ODD.keys())
def test_two_parameters_and_a_query(router, value):
    params = {"name": value, "title": value[::-1]}
    match = router.resolve(router.reverse("album", params, query={"from": value}))
    assert (match.endpoint, match.params) == ("album", params)
    assert list(match.query) == [("from", value)]


@pytest.mark.parametrize("value", ODD.values(), ids=ODD.keys())
def test_path_parameters(router, value):
    match = router.resolve(router.reverse("file", {"name": value}))
    assert (match.endpoint, match.params) == ("file", {"name": value})


def test_an_escaped_slash_is_part_of_its_segment(router):
    assert router.resolve("/bands/AC%2FDC").params == {"name": "AC/DC"}
    assert router.resolve("/bands/a%2fb/albums/c").params == {"name": "a/b", "title": "c"}


def test_a_slash_in_a_value_is_escaped(router):
    assert router.reverse("band", {"name": "AC/DC"}) == "/bands/AC%2FDC"


def test_a_value_cannot_lead_to_another_route(router):
    url = router.reverse("band", {"name": "x/albums/y"})
    assert router.resolve(url).endpoint == "band"
    assert router.resolve("/bands/x%2Falbums%2Fy").endpoint == "band"


def test_slashes_of_a_path_parameter_stay_as_they_are(router):
    assert router.reverse("file", {"name": "a b/c#1.txt"}) == "/files/a%20b/c%231.txt"


def test_a_path_is_decoded_once(router):
    assert router.resolve("/bands/a%252Fb").params == {"name": "a%2Fb"}
    assert router.resolve("/files/a%252Fb/c").params == {"name": "a%2Fb/c"}


def test_an_escaped_slash_does_not_stand_for_one_of_the_pattern(router):
    with pytest.raises(NoMatch):
        router.resolve("/bands%2FAC")


def test_values_keep_their_characters_below_a_mount(router):
    site = Router()
    site.mount("/m", router, namespace="m")
    url = site.reverse("m:band", {"name": "AC/DC"})
    assert url == "/m/bands/AC%2FDC"
    assert site.resolve(url).params == {"name": "AC/DC"}
