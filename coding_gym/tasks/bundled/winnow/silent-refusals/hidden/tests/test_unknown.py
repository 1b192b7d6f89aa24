from winnow import Query

RECORDS = [
    {"id": "a", "x": 1, "y": 1, "tags": ["new"]},
    {"id": "b", "x": 2, "y": None, "tags": []},
    {"id": "c", "x": None, "y": 1},
    {"id": "d", "z": 5, "tags": None},
]


def ids(condition, **parameters):
    return "".join(r["id"] for r in Query(f"where {condition}").run(RECORDS, **parameters))


def test_not_leaves_the_unknown_unknown():
    expected = {
        "not x = 1": "b",
        "not x != 1": "a",
        "not x > 5": "ab",
        "not (x < 5)": "",
        "not not x = 1": "a",
        "not z = 5": "",
    }
    assert {condition: ids(condition) for condition in expected} == expected


def test_negated_tests_are_not_about_missing_values():
    expected = {
        "x not in (1, 7)": "b",
        "x not between 2 and 3": "a",
        "tags not has 'new'": "b",
        "tags.0 not like 'o%'": "a",
    }
    assert {condition: ids(condition) for condition in expected} == expected


def test_and_is_false_as_soon_as_one_side_is():
    expected = {
        "not (x = 1 and y = 7)": "abc",
        "not (x = 1 and y = 1)": "b",
        "not (y = 7 and x = 1)": "abc",
        "not (x = 1 and y = 1 and z = 1)": "bd",
        "x = 1 and not y = 1": "",
    }
    assert {condition: ids(condition) for condition in expected} == expected


def test_or_is_unknown_if_no_side_is_true():
    expected = {
        "not (x = 1 or y = 1)": "",
        "not (x = 7 or y = 7)": "a",
        "not (x = 7 or z = 5)": "",
        "x = 7 or not y = 7": "ac",
    }
    assert {condition: ids(condition) for condition in expected} == expected


def test_lists_with_missing_members():
    assert ids("x in (1, y)") == "a"
    assert ids("not x in (7, y)") == ""
    assert ids("x not in (y, 2)") == ""
    assert ids("not x in (7, 8)") == "ab"


def test_ranges_with_missing_ends():
    assert ids("x not between 5 and y") == "ab"
    assert ids("not x between 1 and y") == ""


def test_parameters_may_be_missing_values():
    assert ids("x = :value", value=None) == ""
    assert ids("not x = :value", value=None) == ""
    assert ids("not x like :value", value=None) == ""


def test_whether_a_value_is_missing_is_known():
    assert ids("not x is missing") == "ab"
    assert ids("x is missing and not y is missing") == "c"
    assert ids("not (x is missing or y is missing)") == "a"


def test_unknown_conditions_are_not_kept():
    expected = {"x = 1": "a", "x != 1": "b", "x < 9 or y = 1": "abc", "x < 9 and y = 1": "a"}
    assert {condition: ids(condition) for condition in expected} == expected
