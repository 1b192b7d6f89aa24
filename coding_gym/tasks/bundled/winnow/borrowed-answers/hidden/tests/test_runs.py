import threading

from winnow import Query, select

ITEMS = [
    {"id": 1, "kind": "tea", "price": 4},
    {"id": 2, "kind": "milk", "price": 2},
    {"id": 3, "kind": "tea", "price": 7},
    {"id": 4, "kind": "rice", "price": 3},
    {"id": 5, "kind": "milk", "price": 1},
]


def ids(records):
    return [record["id"] for record in records]


def test_a_run_keeps_its_parameters_when_another_one_is_begun():
    query = Query("where kind = :kind")
    tea, milk = query.run(ITEMS, kind="tea"), query.run(ITEMS, kind="milk")
    assert (ids(tea), ids(milk)) == ([1, 3], [2, 5])


def test_runs_that_are_read_in_turns():
    query = Query("where price >= :low and price <= :high")
    cheap, dear = query.run(ITEMS, low=1, high=3), query.run(ITEMS, low=4, high=9)
    found = [next(cheap)["id"], next(dear)["id"], next(cheap)["id"], next(dear)["id"]]
    assert (found, ids(cheap), ids(dear)) == ([2, 1, 4, 3], [5], [])


def test_a_run_within_a_run():
    query = Query("where price < :price order by price desc")
    found = {
        item["id"]: ids(query.run(ITEMS, price=item["price"])) for item in query.run(ITEMS, price=5)
    }
    assert found == {1: [4, 2, 5], 4: [2, 5], 2: [5], 5: []}


def test_a_run_within_a_run_that_is_not_sorted():
    query = Query("where price < :price")
    found = [
        (item["id"], ids(query.run(ITEMS, price=item["price"])))
        for item in query.run(ITEMS, price=4)
    ]
    assert found == [(2, [5]), (4, [2, 5]), (5, [])]


def test_kept_queries_are_not_mixed_up():
    found = [select("id where kind = :kind", ITEMS, kind=kind) for kind in ("tea", "milk", "rice")]
    assert [ids(records) for records in found] == [[1, 3], [2, 5], [4]]


def test_records_that_come_from_the_same_query():
    query = Query("where price > :low")
    assert ids(query.run(query.run(ITEMS, low=3), low=1)) == [1, 3]
    assert ids(query.run(query.run(ITEMS, low=1), low=3)) == [1, 3]


def test_a_run_that_was_begun_first_and_is_read_last():
    query = Query("where kind in (:first, :second) order by id desc limit 2")
    early = query.run(ITEMS, first="tea", second="rice")
    assert ids(query.run(ITEMS, first="milk", second="rice")) == [5, 4]
    assert ids(early) == [4, 3]


def test_a_refused_run_changes_nothing():
    query = Query("where kind = :kind and price < :price")
    found = query.run(ITEMS, kind="tea", price=5)
    refused = []
    for parameters in ({"kind": "milk"}, {"kind": "milk", "price": 9, "other": 1}):
        try:
            query.run(ITEMS, **parameters)
        except ValueError as error:
            refused.append(str(error).split("'")[1])
    assert (refused, ids(found)) == (["price", "other"], [1])


def test_runs_in_several_threads():
    query = Query("where n = :n")
    records = [{"n": n} for n in range(4)] * 5
    barrier = threading.Barrier(4)
    found = {}

    def read(number):
        run = query.run(records, n=number)
        barrier.wait(timeout=10)
        found[number] = [record["n"] for record in run]

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [number] * 5 for number in range(4)}


def test_columns_of_runs_with_parameters():
    query = Query("select id, price as cost where kind = :kind")
    milk, rice = query.run(ITEMS, kind="milk"), query.run(ITEMS, kind="rice")
    assert list(milk) == [{"id": 2, "cost": 2}, {"id": 5, "cost": 1}]
    assert list(rice) == [{"id": 4, "cost": 3}]


def test_one_run_after_the_other():
    query = Query("where kind = :kind")
    assert [ids(query.run(ITEMS, kind=kind)) for kind in ("rice", "tea")] == [[4], [1, 3]]


def test_the_same_objects_are_given():
    (found,) = Query("where id = :id").run(ITEMS, id=4)
    assert found is ITEMS[3]
