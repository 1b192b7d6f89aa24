import pytest

from winnow import Query


def found(pattern, *texts):
    records = [{"text": text} for text in texts]
    return [r["text"] for r in Query("where text like :pattern").run(records, pattern=pattern)]


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("1.50", "1.50", "1250"),
        ("a.b%", "a.b.c", "axb"),
        ("c++%", "C++ and C", "ccc"),
        ("what?", "What?", "wha"),
        ("(new)%", "(new) tea", "new tea"),
        ("%[sale]", "tea [sale]", "tea s"),
        ("$_", "$5", "5"),
        ("a*", "a*", "aaa"),
        ("x|y", "x|y", "x"),
        ("^%", "^top", "top"),
        ("%\\d", "c:\\d", "7"),
        ("{2}%", "{2} left", "2 left"),
    ],
    ids=[
        *("point", "path", "plus", "question", "round", "square"),
        *("dollar", "star", "bar", "hat", "backslash", "brace"),
    ],
)
def test_only_two_characters_are_special(pattern, yes, no):
    assert found(pattern, no, yes) == [yes]


def test_no_pattern_is_malformed():
    patterns = ["%(", "[%", "%\\", "*%", "a)_", "+"]
    texts = [pattern.replace("%", "some ").replace("_", "x") for pattern in patterns]
    assert [found(pattern, *texts) for pattern in patterns] == [[text] for text in texts]


def test_patterns_in_the_query_itself():
    records = [{"price": "1.50"}, {"price": "1x50"}]
    assert list(Query("where price like '1.5_'").run(records)) == records[:1]
    assert list(Query("where price not like '1.5_'").run(records)) == records[1:]


def test_any_text_and_any_character():
    assert found("%", "", "a", "two\nlines") == ["", "a", "two\nlines"]
    assert found("_", "", "a", "ab", "\n") == ["a", "\n"]
    assert found("b%e", "bottle", "be", "beer") == ["bottle", "be"]


def test_case_does_not_count():
    assert found("tEa%", "Tea", "TEAPOT", "steam") == ["Tea", "TEAPOT"]
    assert found("é_", "É!", "e!") == ["É!"]
