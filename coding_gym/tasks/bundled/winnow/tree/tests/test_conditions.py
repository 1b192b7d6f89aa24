import datetime as dt

import pytest

from winnow import Query, QuerySyntaxError

PEOPLE = [
    {"name": "Ann", "age": 31, "city": "Oslo", "tags": ["vip", "new"], "born": dt.date(1993, 4, 1)},
    {"name": "Bob", "age": 17, "city": "Bergen", "tags": [], "born": dt.date(2007, 9, 30)},
    {"name": "Cid", "age": 45, "city": "Moss", "tags": ["new"], "address": {"street": "Kirkegata"}},
    {"name": "Dag", "age": 31.5, "city": None, "active": True},
]


def names(condition, **parameters):
    found = Query(f"where {condition}").run(PEOPLE, **parameters)
    return "".join(person["name"][0] for person in found)


def test_comparisons():
    expected = {
        "age = 31": "A",
        "age != 31": "BCD",
        "age < 31": "B",
        "age <= 31": "AB",
        "age > 31.2": "CD",
        "age >= 45": "C",
        "name = 'Bob'": "B",
        "'Bob' < name": "CD",
        "active = true": "D",
        "age > '31'": "",
        "age = '31'": "",
    }
    assert {condition: names(condition) for condition in expected} == expected


def test_words_are_recognised_in_any_case():
    assert names("age > 20 AND Not city = 'Oslo' and city Is NOT Missing") == "C"


def test_and_binds_more_tightly_than_or():
    assert names("name = 'Ann' or name = 'Bob' and age > 20") == "A"
    assert names("(name = 'Ann' or name = 'Bob') and age < 20") == "B"


def test_membership():
    assert names("city in ('Oslo', 'Moss')") == "AC"
    assert names("age in (31.5)") == "D"
    assert names("age not in (17, 45)") == "AD"


def test_ranges():
    assert names("age between 20 and 40") == "AD"
    assert names("age not between 20 and 40") == "BC"
    assert names("name between 'B' and 'D'") == "BC"


def test_patterns():
    assert names("name like 'a%'") == "A"
    assert names("name like '_o_'") == "B"
    assert names("city like '%s%'") == "AC"
    assert names("name not like '%n'") == "BCD"


def test_parts():
    assert names("tags has 'new'") == "AC"
    assert names("city has 'erg'") == "B"
    assert names("age has 3") == ""


def test_missing_values():
    assert names("city is missing") == "D"
    assert names("city is not missing") == "ABC"
    assert names("active is missing") == "ABC"
    assert names("address.street is not missing") == "C"


def test_conditions_about_missing_values_are_not_true():
    assert names("address.street = 'Kirkegata'") == "C"
    assert names("city < 'Z'") == "ABC"
    assert names("nothing = 1 or age = 17") == "B"


def test_paths():
    assert names("tags.0 = 'vip'") == "A"
    assert names("tags.1 is not missing") == "A"
    assert names("name.0 is missing") == "ABCD"


def test_parameters():
    assert names("born > :day", day=dt.date(2000, 1, 1)) == "B"
    assert names("age > :low and age < :high", low=20, high=40) == "AD"


def test_quotes_in_texts():
    records = [{"name": "O'Hara"}, {"name": "OHara"}]
    assert list(Query("where name = 'O''Hara'").run(records)) == records[:1]


def test_malformed_queries_are_refused():
    queries = """
        where
        where age
        where age =
        where age = 1 and
        where (age = 1
        where age in ()
        where age between 1
        where age is 1
        where name = 'Ann
        where age # 1
        order name
        limit -1
        limit 1.5
        limit 1 where age = 1
        select
        age = 1
    """
    for query in queries.strip().splitlines():
        with pytest.raises(QuerySyntaxError):
            Query(query)
