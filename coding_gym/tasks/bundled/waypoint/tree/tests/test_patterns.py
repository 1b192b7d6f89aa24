from datetime import date

import pytest

from waypoint import BadPattern, BadTarget, NoMatch, NoReverse, Router


def router_of(*patterns, **options):
    router = Router(**options)
    for pattern in patterns:
        router.add(pattern, pattern, name=pattern)
    return router


@pytest.mark.parametrize(
    ("pattern", "path", "params"),
    [
        ("/", "/", {}),
        ("/about/", "/about/", {}),
        ("/u/<name>", "/u/ann", {"name": "ann"}),
        ("/u/<int:n>/edit", "/u/007/edit", {"n": 7}),
        ("/d/<date:day>", "/d/2024-02-29", {"day": date(2024, 2, 29)}),
        ("/p/<slug:s>", "/p/a-b_c", {"s": "a-b_c"}),
        ("/f/<path:rest>", "/f/a/b.txt", {"rest": "a/b.txt"}),
        ("/f/<path:rest>", "/f/a/", {"rest": "a/"}),
    ],
    ids=["root", "literal", "str", "int", "date", "slug", "path", "path-slash"],
)
def test_matches(pattern, path, params):
    assert router_of(pattern).resolve(path).params == params


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/about", "/about/"),
        ("/u/<name>", "/u/"),
        ("/u/<name>", "/u/a/b"),
        ("/u/<int:n>", "/u/-1"),
        ("/u/<int:n>", "/u/%D9%A3"),
        ("/d/<date:day>", "/d/2023-02-29"),
        ("/p/<slug:s>", "/p/caf%C3%A9"),
        ("/f/<path:rest>", "/f/"),
        ("/f/<path:rest>", "/f"),
    ],
    ids=["slash", "empty", "deep", "negative", "digit", "date", "slug", "path-empty", "path-none"],
)
def test_does_not_match(pattern, path):
    with pytest.raises(NoMatch):
        router_of(pattern).resolve(path)


@pytest.mark.parametrize(
    "pattern",
    ["about", "/<what:x>", "/a<b>", "/<x>/<x>", "/<path:p>/edit", "/<path:p>/<path:q>", "/<>"],
    ids=["relative", "converter", "mixed", "twice", "path-first", "two-paths", "no-name"],
)
def test_malformed_patterns(pattern):
    with pytest.raises(BadPattern):
        router_of(pattern)


def test_the_more_literal_pattern_wins():
    router = router_of("/<path:p>", "/<name>/new", "/<name>/<x>", "/docs/<x>", "/docs/new")
    assert router.resolve("/docs/new").endpoint == "/docs/new"
    assert router.resolve("/docs/old").endpoint == "/docs/<x>"
    assert router.resolve("/wiki/new").endpoint == "/<name>/new"
    assert router.resolve("/wiki/a/b").endpoint == "/<path:p>"


def test_of_equals_the_first_wins():
    router = router_of("/<int:n>", "/<name>", "/<other>")
    assert router.resolve("/12").endpoint == "/<int:n>"
    assert router.resolve("/ann").endpoint == "/<name>"


def test_literal_text_is_compared_decoded():
    router = router_of("/caf\u00e9/<x>")
    assert router.resolve("/caf%C3%A9/%E2%82%AC").params == {"x": "\u20ac"}
    assert router.reverse("/caf\u00e9/<x>", {"x": "a b"}) == "/caf%C3%A9/a%20b"


def test_invalid_escapes_are_refused():
    with pytest.raises(BadTarget, match="UTF-8"):
        router_of("/<x>").resolve("/%FF")


@pytest.mark.parametrize("value", [-1, True, "1", 1.0], ids=["negative", "bool", "text", "float"])
def test_values_that_a_converter_refuses(value):
    with pytest.raises(NoReverse, match="'n'"):
        router_of("/<int:n>").reverse("/<int:n>", {"n": value})


def test_missing_and_unknown_parameters():
    router = router_of("/<a>/<b>")
    for params in ({}, {"a": "1"}, {"a": "1", "b": "2", "c": "3"}):
        with pytest.raises(NoReverse, match="wants"):
            router.reverse("/<a>/<b>", params)


def test_converters_of_ones_own():
    class Hex:
        def to_python(self, text):
            return int(text, 16)

        def to_text(self, value):
            return f"{value:x}"

    router = router_of("/<hex:n>", converters={"hex": Hex()})
    assert router.resolve("/ff").params == {"n": 255}
    assert router.reverse("/<hex:n>", {"n": 255}) == "/ff"
