import pytest

from braid import HunkError, apply, diff

OLD = "".join(f"line {number}\n" for number in range(1, 31))
NEW = OLD.replace("line 5\n", "line five\n").replace("line 25\n", "line 25\nline 25.5\n")


def test_hunks_are_found_further_down():
    assert apply(diff(OLD, NEW), "title\n\n" + OLD) == "title\n\n" + NEW


def test_hunks_are_found_further_up():
    assert apply(diff(OLD, NEW), OLD.replace("line 1\n", "")) == NEW.replace("line 1\n", "")


def test_hunks_are_found_where_something_was_added_between_them():
    changed = OLD.replace("line 15\n", "line 15\nand\nmore\n")
    assert apply(diff(OLD, NEW), changed) == NEW.replace("line 15\n", "line 15\nand\nmore\n")


def test_a_hunk_that_fits_nowhere_is_named():
    with pytest.raises(HunkError, match="hunk 2") as caught:
        apply(diff(OLD, NEW), OLD.replace("line 25", "line 26"))
    assert caught.value.number == 2


def test_a_patch_cannot_be_applied_twice():
    with pytest.raises(HunkError, match="hunk 1"):
        apply(diff(OLD, NEW), NEW)


def test_the_text_may_end_too_early():
    with pytest.raises(HunkError):
        apply(diff(OLD, NEW), "line 1\n")
    with pytest.raises(HunkError):
        apply(diff("a\n", "b\n"), "")
