import pytest

from waypoint import BadPattern, NoMatch, NoReverse, Router, RoutingError


@pytest.fixture
def blog():
    router = Router()
    router.add("/", "list", name="index")
    router.add("/<slug:title>", "post", name="post")
    return router


def test_a_match_tells_endpoint_name_and_parameters(blog):
    match = blog.resolve("/hello")
    assert (match.endpoint, match.name, match.params) == ("post", "post", {"title": "hello"})


def test_mounted_routes_resolve_and_reverse(blog):
    site = Router()
    site.add("/", "home", name="index")
    site.mount("/blog/", blog, namespace="blog")
    assert site.resolve("/").name == "index"
    assert site.resolve("/blog/").name == "blog:index"
    assert site.resolve("/blog/hello").params == {"title": "hello"}
    assert site.reverse("blog:post", {"title": "hello"}) == "/blog/hello"
    assert blog.reverse("post", {"title": "hello"}) == "/hello"


def test_mounts_nest_and_repeat(blog):
    inner, site = Router(), Router()
    inner.mount("/en", blog, namespace="en")
    inner.mount("/de", blog, namespace="de")
    site.mount("/", inner)
    assert site.resolve("/de/hallo").name == "de:post"
    assert site.reverse("en:index") == "/en/"


def test_own_routes_and_mounted_ones_compete_by_pattern_alone(blog):
    site = Router()
    site.mount("/blog", blog)
    site.add("/blog/new", "editor")
    assert site.resolve("/blog/new").endpoint == "editor"


def test_routes_may_be_added_after_use(blog):
    with pytest.raises(NoMatch):
        blog.resolve("/tags/x")
    blog.add("/tags/<tag>", "tag", name="tag")
    assert blog.resolve("/tags/x").endpoint == "tag"
    assert blog.reverse("tag", {"tag": "x"}) == "/tags/x"


def test_routers_may_be_mounted_after_use(blog):
    site = Router()
    site.add("/", "home")
    assert site.resolve("/").endpoint == "home"
    site.mount("/blog", blog)
    assert site.resolve("/blog/hello").endpoint == "post"


def test_routes_may_be_added_to_a_mounted_router_after_use(blog):
    site = Router()
    site.mount("/blog", blog)
    assert site.resolve("/blog/hello").endpoint == "post"
    blog.add("/tags/<tag>", "tag", name="tag")
    assert site.resolve("/blog/tags/x").endpoint == "tag"


def test_the_table_is_sorted_once(blog):
    site = Router()
    site.mount("/blog", blog)
    table = site.table()
    site.resolve("/blog/hello")
    site.reverse("index")
    assert site.table() is table


def test_the_first_of_two_equal_names_is_reversed():
    router = Router()
    router.add("/a", 1, name="x")
    router.add("/b", 2, name="x")
    assert router.reverse("x") == "/a"


def test_a_router_cannot_hold_itself(blog):
    site = Router()
    site.mount("/blog", blog)
    for router in (blog, site):
        with pytest.raises(ValueError, match="inside itself"):
            blog.mount("/x", router)


def test_prefixes_take_no_parameters(blog):
    for prefix in ("/<x>", "blog"):
        with pytest.raises(BadPattern):
            Router().mount(prefix, blog)


def test_unknown_names(blog):
    with pytest.raises(NoReverse, match="nope") as caught:
        blog.reverse("nope")
    assert isinstance(caught.value, RoutingError)
    assert isinstance(caught.value, LookupError)
