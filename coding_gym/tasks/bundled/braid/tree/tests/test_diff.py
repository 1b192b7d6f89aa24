import pytest

from braid import PatchError, apply, diff

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"


def test_equal_texts_have_no_diff():
    assert diff(OLD, OLD) == ""
    assert apply("", OLD) == OLD


def test_a_changed_line():
    assert diff(OLD, OLD.replace("five", "5"), old_name="a/n", new_name="b/n") == (
        "--- a/n\n+++ b/n\n@@ -2,7 +2,7 @@\n two\n three\n four\n-five\n+5\n six\n seven\n eight\n"
    )


def test_changes_far_apart_have_their_own_hunks():
    new = OLD.replace("one\n", "").replace("ten\n", "ten\neleven\n")
    assert diff(OLD, new) == (
        "--- old\n+++ new\n"
        "@@ -1,4 +1,3 @@\n-one\n two\n three\n four\n"
        "@@ -8,3 +7,4 @@\n eight\n nine\n ten\n+eleven\n"
    )


def test_changes_close_together_share_a_hunk():
    new = OLD.replace("two", "2").replace("six", "6")
    assert diff(OLD, new, context=1).count("@@ -") == 2
    assert diff(OLD, new, context=2).count("@@ -") == 1


def test_lengths_of_one_are_left_out():
    assert diff("a\n", "b\n") == "--- old\n+++ new\n@@ -1 +1 @@\n-a\n+b\n"


def test_only_line_feeds_end_lines():
    old = "a\x0cb\r\u2028c\n"
    assert diff(old, "a\n") == f"--- old\n+++ new\n@@ -1 +1 @@\n-{old}+a\n"


def test_diffs_are_short():
    old, new = "a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n"
    found = diff(old, new).splitlines()[3:]
    assert sum(line[0] in "+-" for line in found) == 5


@pytest.mark.parametrize("context", [1, 2, 3, 9])
def test_applying_a_diff_gives_the_new_text(context):
    new = OLD.replace("two\n", "").replace("six", "6\n6.5").replace("ten\n", "ten\nmore\n")
    patch = diff(OLD, new, context=context)
    assert apply(patch, OLD) == new


def test_what_stands_before_the_header_is_passed_over():
    patch = "commit 1\n\n    A change\n\ndiff --git a/n b/n\n" + diff("a\nb\n", "a\nc\n")
    assert apply(patch, "a\nb\n") == "a\nc\n"


def test_empty_context_lines_may_have_lost_their_blank():
    assert apply("--- a\n+++ b\n@@ -1,2 +1,3 @@\n a\n\n+c\n", "a\n\n") == "a\n\nc\n"


@pytest.mark.parametrize(
    ("patch", "line"),
    [
        ("hello\n", "no line"),
        ("--- a\nhello\n", "line 2"),
        ("--- a\n+++ b\nhello\n", "line 3"),
        ("--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n", "line 5"),
        ("--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n+c\n", "line 6"),
    ],
    ids=["no-header", "half-header", "no-hunk", "short", "long"],
)
def test_malformed_patches_are_refused(patch, line):
    with pytest.raises(PatchError, match=line):
        apply(patch, "a\n")
