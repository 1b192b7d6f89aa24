import pytest

from braid import HunkError, apply, diff

NOTE = "\\ No newline at end of file\n"
HEAD = "--- old\n+++ new\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a\nb\n", "a\nb", f"@@ -1,2 +1,2 @@\n a\n-b\n+b\n{NOTE}"),
        ("a\nb", "a\nb\n", f"@@ -1,2 +1,2 @@\n a\n-b\n{NOTE}+b\n"),
        ("a\nb", "a\nc", f"@@ -1,2 +1,2 @@\n a\n-b\n{NOTE}+c\n{NOTE}"),
        ("a\nb", "c\nb", f"@@ -1,2 +1,2 @@\n-a\n+c\n b\n{NOTE}"),
        ("", "a", f"@@ -0,0 +1 @@\n+a\n{NOTE}"),
        ("a", "", f"@@ -1 +0,0 @@\n-a\n{NOTE}"),
        ("a", "a\nb", f"@@ -1 +1,2 @@\n-a\n{NOTE}+a\n+b\n{NOTE}"),
    ],
    ids=["lost", "gained", "neither", "kept", "new", "gone", "longer"],
)
def test_missing_line_feeds_are_noted(old, new, expected):
    assert diff(old, new) == HEAD + expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\n", "a\nb"),
        ("a\nb", "a\nb\n"),
        ("a\nb", "x\nb"),
        ("a\nb", "a\nb\nc"),
        ("a\nb\nc", "a"),
        ("", "a"),
        ("a", ""),
        ("a\n\n", "a\n"),
        ("a\n1\n2\n3\n4\n5\n6\n7\n8\nb", "c\n1\n2\n3\n4\n5\n6\n7\n8\nb\n"),
    ],
    ids=["lost", "gained", "kept", "longer", "shorter", "new", "gone", "blank", "two-hunks"],
)
def test_diffs_give_the_new_text_to_the_letter(old, new):
    assert apply(diff(old, new), old) == new


def test_patches_of_other_tools():
    patch = f"--- a/n\n+++ b/n\n@@ -1,2 +1,2 @@\n a\n-b\n{NOTE}+c\n{NOTE}"
    assert apply(patch, "a\nb") == "a\nc"
    patch = f"--- a/n\n+++ b/n\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n{NOTE}"
    assert apply(patch, "a\nb\n") == "a\nb"


def test_the_note_may_be_in_another_language():
    patch = "--- a\n+++ b\n@@ -1 +1 @@\n-a\n\\ Kein Zeilenumbruch am Dateiende.\n+b\n"
    assert apply(patch, "a") == "b\n"


def test_a_line_with_a_line_feed_is_another_line():
    outcomes = []
    for text in ("a\nb\n", "a\nb"):
        try:
            outcomes.append(apply(diff("a\nb", "a\nc"), text))
        except HunkError as error:
            outcomes.append(error.number)
    assert outcomes == [1, "a\nc"]


def test_lines_that_begin_with_a_backslash():
    old = "\\a\n\\b\n"
    assert apply(diff(old, "\\a\n\\c\n"), old) == "\\a\n\\c\n"
    assert apply(diff("\\a\n\\b", "\\c\n\\b"), "\\a\n\\b") == "\\c\n\\b"


def test_texts_that_are_finished_have_no_note():
    assert diff("a\nb\n", "a\nc\n") == HEAD + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
