import pytest

from braid import MergeResult, merge

BASE = "".join(f"{number}\n" for number in range(1, 13))


def edited(**changes):
    """The base, with ``_n`` giving what stands for line n."""
    return "".join(changes.get(f"_{number}", f"{number}\n") for number in range(1, 13))


def without(first, last):
    return edited(**{f"_{number}": "" for number in range(first, last + 1)})


def conflict(ours, theirs):
    return f"<<<<<<< ours\n{ours}=======\n{theirs}>>>>>>> theirs\n"


def lines(first, last):
    return "".join(f"{number}\n" for number in range(first, last + 1))


def test_one_side_removes_what_the_other_edits_twice():
    result = merge(BASE, without(3, 9), edited(_4="four\n", _8="eight\n"))
    theirs = "3\nfour\n5\n6\n7\neight\n9\n"
    assert result == MergeResult(lines(1, 2) + conflict("", theirs) + lines(10, 12), 1)


def test_the_same_with_sides_exchanged():
    result = merge(BASE, edited(_4="four\n", _8="eight\n"), without(3, 9))
    ours = "3\nfour\n5\n6\n7\neight\n9\n"
    assert result == MergeResult(lines(1, 2) + conflict(ours, "") + lines(10, 12), 1)


def test_a_small_change_within_a_large_one_ends_nothing():
    result = merge(BASE, without(3, 9), edited(_4="four\n", _11="eleven\n"))
    theirs = "3\nfour\n5\n6\n7\n8\n9\n"
    expected = lines(1, 2) + conflict("", theirs) + "10\neleven\n12\n"
    assert result == MergeResult(expected, 1)


def test_three_edits_in_a_rewritten_part():
    rewritten = edited(_2="A\n", _3="B\n", _4="C\n", _5="D\n", _6="E\n", _7="F\n", _8="G\n")
    result = merge(BASE, rewritten, edited(_3="", _5="five\n5a\n", _7="7\n7a\n"))
    conflicting = conflict("A\nB\nC\nD\nE\nF\nG\n", "2\n4\nfive\n5a\n6\n7\n7a\n8\n")
    assert result == MergeResult("1\n" + conflicting + lines(9, 12), 1)


def test_chains_of_overlapping_changes():
    ours = edited(_2="A\n", _3="B\n", _4="C\n", _6="D\n", _7="E\n", _8="F\n")
    theirs = edited(_4="x\n", _5="y\n", _6="z\n", _10="ten\n")
    expected = (
        "1\n" + conflict("A\nB\nC\n5\nD\nE\nF\n", "2\n3\nx\ny\nz\n7\n8\n") + "9\nten\n11\n12\n"
    )
    assert merge(BASE, ours, theirs) == MergeResult(expected, 1)


def test_both_sides_end_with_the_same_text():
    ours = edited(_3="x\n", _4="", _5="", _6="", _7="y\n")
    theirs = "1\n2\nx\ny\n8\n9\n10\n11\n12\n"
    assert merge(BASE, ours, theirs) == MergeResult(theirs, 0)


def test_insertions_within_a_removed_part():
    result = merge(BASE, without(2, 11), edited(_3="3\n3a\n", _6="6\n6a\n", _9="9\n9a\n"))
    theirs = "2\n3\n3a\n4\n5\n6\n6a\n7\n8\n9\n9a\n10\n11\n"
    assert result == MergeResult("1\n" + conflict("", theirs) + "12\n", 1)


def test_edits_at_both_ends_of_a_removed_part():
    result = merge(BASE, without(4, 9), edited(_3="three\n", _6="six\n", _10="ten\n"))
    ours, theirs = "3\n10\n", "three\n4\n5\nsix\n7\n8\n9\nten\n"
    assert result == MergeResult(lines(1, 2) + conflict(ours, theirs) + lines(11, 12), 1)


def test_all_was_removed_and_all_was_edited():
    result = merge(BASE, "", edited(_1="one\n", _12="twelve\n"))
    theirs = "one\n" + lines(2, 11) + "twelve\n"
    assert result == MergeResult(conflict("", theirs), 1)


@pytest.mark.parametrize("first", range(1, 9))
def test_no_line_is_lost_or_doubled(first):
    ours = without(first, first + 4)
    theirs = edited(**{f"_{first + 1}": "x\n", f"_{first + 3}": "y\n"})
    merged = merge(BASE, ours, theirs).text
    taken_ours = merged.split("<<<<<<< ours\n")[0] + merged.split(">>>>>>> theirs\n")[1]
    taken_theirs = merged.replace("<<<<<<< ours\n=======\n", "").replace(">>>>>>> theirs\n", "")
    assert (taken_ours, taken_theirs) == (ours, theirs)


def test_one_edit_in_a_removed_part():
    result = merge(BASE, without(5, 7), edited(_6="six\n"))
    expected = lines(1, 4) + conflict("", "5\nsix\n7\n") + lines(8, 12)
    assert result == MergeResult(expected, 1)


def test_separate_edits_stay_separate():
    result = merge(BASE, edited(_2="two\n", _6="six\n"), edited(_4="four\n", _8="eight\n"))
    expected = edited(_2="two\n", _4="four\n", _6="six\n", _8="eight\n")
    assert result == MergeResult(expected, 0)
