import pytest

from waypoint import NoMatch, NoReverse, Router


def chain(depth):
    """Routers mounted in each other, all of them in use; the outermost comes first."""
    routers = [Router() for _ in range(depth)]
    for number, router in enumerate(routers):
        router.add("/", f"root-{number}", name="root")
    for number, (outer, inner) in enumerate(zip(routers, routers[1:], strict=False)):
        outer.mount(f"/m{number}", inner, namespace=f"n{number}")
    for router in routers:
        router.resolve("/")
        router.reverse("root")
    return routers


def test_a_route_added_one_level_down_resolves():
    outer, inner = chain(2)
    inner.add("/late", "late")
    assert outer.resolve("/m0/late").endpoint == "late"
    assert inner.resolve("/late").endpoint == "late"


def test_a_name_added_one_level_down_reverses():
    outer, inner = chain(2)
    with pytest.raises(NoReverse):
        outer.reverse("n0:late")
    inner.add("/late/<int:n>", "late", name="late")
    assert outer.reverse("n0:late", {"n": 3}) == "/m0/late/3"


@pytest.mark.parametrize("depth", [3, 5])
def test_a_route_added_deep_down_is_seen_at_every_level(depth):
    routers = chain(depth)
    routers[-1].add("/late", "late", name="late")
    for level, router in enumerate(routers):
        prefix = "".join(f"/m{number}" for number in range(level, depth - 1))
        names = [f"n{number}" for number in range(level, depth - 1)]
        assert router.resolve(f"{prefix}/late").endpoint == "late"
        assert router.reverse(":".join([*names, "late"])) == f"{prefix}/late"


def test_a_router_mounted_in_a_mounted_one_is_seen():
    outer, _, inner = chain(3)
    late = Router()
    late.add("/x", "x", name="x")
    inner.mount("/late", late, namespace="late")
    assert outer.resolve("/m0/m1/late/x").endpoint == "x"
    assert outer.reverse("n0:n1:late:x") == "/m0/m1/late/x"
    late.add("/y", "y", name="y")
    assert outer.resolve("/m0/m1/late/y").endpoint == "y"


def test_every_router_that_holds_another_sees_its_routes():
    shared = Router()
    sites = [Router(), Router(), Router()]
    for site in sites:
        site.mount("/shared", shared)
        assert site.table() == ()
    shared.add("/late", "late", name="late")
    assert [site.resolve("/shared/late").endpoint for site in sites] == ["late"] * 3
    assert [site.reverse("late") for site in sites] == ["/shared/late"] * 3


def test_a_router_mounted_twice_is_seen_twice():
    site, shared = Router(), Router()
    site.mount("/a", shared, namespace="a")
    site.mount("/b", shared, namespace="b")
    assert site.table() == ()
    shared.add("/late", "late", name="late")
    assert site.resolve("/a/late").name == "a:late"
    assert site.resolve("/b/late").name == "b:late"


def test_a_late_route_takes_its_place_by_rank():
    outer, inner = chain(2)
    inner.add("/<name>", "any")
    assert outer.resolve("/m0/new").endpoint == "any"
    inner.add("/new", "new")
    assert outer.resolve("/m0/new").endpoint == "new"


def test_a_late_route_stays_below_its_mount():
    outer, inner = chain(2)
    inner.add("/late", "late")
    with pytest.raises(NoMatch):
        outer.resolve("/late")


def test_tables_are_kept_until_something_below_changes():
    outer, middle, inner = chain(3)
    sibling = Router()
    outer.mount("/sibling", sibling)
    tables = outer.table(), middle.table(), inner.table()
    outer.resolve("/m0/m1/")
    assert outer.table() is tables[0]
    sibling.add("/x", "x")
    assert outer.table() is not tables[0]
    assert middle.table() is tables[1]
    assert inner.table() is tables[2]
