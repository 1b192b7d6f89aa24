from itertools import count, islice

import pytest

from winnow import ParameterError, Query, select

ITEMS = [
    {"id": 1, "kind": "tea", "price": 4.5, "stock": {"oslo": 3}},
    {"id": 2, "kind": "milk", "price": 1.5},
    {"id": 3, "kind": "tea", "price": None},
    {"id": 4, "kind": "tea", "price": 12, "stock": {"oslo": 0}},
    {"id": 5, "kind": "milk", "price": 1.5},
]


def ids(query, **parameters):
    return [item["id"] for item in Query(query).run(ITEMS, **parameters)]


def test_an_empty_query_gives_everything():
    assert list(Query("").run(ITEMS)) == ITEMS


def test_sorting():
    assert ids("order by price") == [2, 5, 1, 4, 3]
    assert ids("order by price desc") == [4, 1, 2, 5, 3]
    assert ids("order by kind, price desc") == [2, 5, 4, 1, 3]
    assert ids("order by kind desc, id desc") == [4, 3, 1, 5, 2]
    assert ids("order by stock.oslo asc") == [4, 1, 2, 3, 5]


def test_sorting_values_of_different_kinds():
    records = [{"v": v} for v in ("b", 2, True, "a", None, 1.5, [1])]
    assert [r["v"] for r in Query("order by v").run(records)] == [True, 1.5, 2, "a", "b", [1], None]


def test_limits_and_offsets():
    assert ids("limit 2") == [1, 2]
    assert ids("limit 2 offset 3") == [4, 5]
    assert ids("offset 4") == [5]
    assert ids("limit 0") == []
    assert ids("where kind = 'tea' order by id desc limit 1 offset 1") == [3]


def test_columns():
    assert list(Query("select id, stock.oslo as left where kind = 'tea'").run(ITEMS)) == [
        {"id": 1, "left": 3},
        {"id": 3, "left": None},
        {"id": 4, "left": 0},
    ]
    assert list(Query("select stock.oslo limit 1").run(ITEMS)) == [{"stock.oslo": 3}]


def test_select_adds_its_own_word():
    assert list(select("id where kind = :kind", ITEMS, kind="milk")) == [{"id": 2}, {"id": 5}]
    assert list(select("where id = 2", ITEMS)) == [ITEMS[1]]
    assert list(select("SELECT id LIMIT 1", ITEMS)) == [{"id": 1}]
    assert list(select("", ITEMS)) == ITEMS


def test_a_query_can_be_run_again_with_other_parameters():
    query = Query("where kind = :kind limit 1")
    assert list(query.run(ITEMS, kind="milk")) == [ITEMS[1]]
    assert list(query.run(ITEMS, kind="tea")) == [ITEMS[0]]


def test_parameters_must_fit_the_query():
    query = Query("where kind = :kind")
    with pytest.raises(ParameterError, match="'kind' is not given"):
        query.run(ITEMS)
    with pytest.raises(ParameterError, match="'kin' is not in the query"):
        query.run(ITEMS, kind="tea", kin="tea")


def test_records_may_be_endless():
    records = ({"n": number} for number in count())
    found = Query("where n > 10 and n != 12").run(records)
    assert [record["n"] for record in islice(found, 3)] == [11, 13, 14]


def test_queries_have_a_readable_form():
    assert repr(Query("limit 1")) == "Query('limit 1')"
