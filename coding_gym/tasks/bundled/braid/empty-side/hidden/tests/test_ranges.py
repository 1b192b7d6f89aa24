import pytest

from braid import apply, diff

OLD = "one\ntwo\nthree\nfour\n"


def ranges(old, new, context=3):
    lines = diff(old, new, context=context).splitlines()
    return [line for line in lines if line.startswith("@@")]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "a\nb\nc\n", "@@ -0,0 +1,3 @@"),
        ("", "a\n", "@@ -0,0 +1 @@"),
        ("a\nb\n", "", "@@ -1,2 +0,0 @@"),
        ("a\n", "", "@@ -1 +0,0 @@"),
    ],
    ids=["new", "new-line", "gone", "gone-line"],
)
def test_files_that_come_and_go(old, new, expected):
    assert ranges(old, new) == [expected]


def test_insertions_without_context_name_the_line_before():
    assert ranges(OLD, OLD.replace("two\n", "two\n2a\n2b\n"), 0) == ["@@ -2,0 +3,2 @@"]
    assert ranges(OLD, "zero\n" + OLD, 0) == ["@@ -0,0 +1 @@"]
    assert ranges(OLD, OLD + "five\n", 0) == ["@@ -4,0 +5 @@"]


def test_removals_without_context_name_the_line_before():
    assert ranges(OLD, OLD.replace("two\nthree\n", ""), 0) == ["@@ -2,2 +1,0 @@"]
    assert ranges(OLD, OLD.replace("one\n", ""), 0) == ["@@ -1 +0,0 @@"]


def test_several_ranges_without_context():
    new = "zero\none\n2\nthree\n"
    assert ranges(OLD, new, 0) == ["@@ -0,0 +1 @@", "@@ -2 +3 @@", "@@ -4 +4,0 @@"]


@pytest.mark.parametrize(
    "new",
    [
        "zero\n" + OLD,
        OLD + "five\n",
        OLD.replace("two\n", "two\n2a\n2b\n"),
        OLD.replace("two\n", "two\ntwo\n").replace("four\n", "3a\nfour\n4a\n"),
    ],
    ids=["front", "end", "middle", "many"],
)
def test_insertions_without_context_can_be_applied(new):
    assert apply(diff(OLD, new, context=0), OLD) == new


def test_ranges_with_lines_count_from_one():
    assert ranges(OLD, OLD.replace("three", "3")) == ["@@ -1,4 +1,4 @@"]
    assert ranges(OLD, OLD.replace("three", "3"), 0) == ["@@ -3 +3 @@"]
    assert ranges(OLD, OLD.replace("three\n", ""), 1) == ["@@ -2,3 +2,2 @@"]
