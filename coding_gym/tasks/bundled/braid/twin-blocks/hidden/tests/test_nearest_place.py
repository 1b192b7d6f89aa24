import pytest

from braid import apply, diff

BLOCK = "begin\n  work\n  rest\nend\n"


def blocks(count, changed=(), new="  play\n"):
    return "".join(
        BLOCK.replace("  work\n", new) if number in changed else BLOCK for number in range(count)
    )


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("added", [0, 1])
def test_lines_in_front_do_not_change_which_block_is_meant(number, added):
    patch = diff(blocks(6), blocks(6, {number}), context=1)
    title = "title\n" * added
    assert apply(patch, title + blocks(6)) == title + blocks(6, {number})


def test_the_nearest_block_is_taken_when_lines_are_missing_in_front():
    patch = diff("1\n2\n3\n" + blocks(5), "1\n2\n3\n" + blocks(5, {3}), context=1)
    assert apply(patch, "3\n" + blocks(5)) == "3\n" + blocks(5, {3})


def test_later_hunks_are_as_far_away_as_earlier_ones():
    text, new = "top\n" + blocks(12), "TOP\n" + blocks(12, {4, 9})
    patch = diff(text, new, context=1)
    for added in (3, 6, 9):
        front = "".join(f"{number}\n" for number in range(added))
        assert apply(patch, front + text) == front + new


def test_far_hunks_after_insertions():
    text = "top\n" + blocks(3) + "middle\n" + blocks(9)
    new = "top\n" + blocks(3) + "MIDDLE\n" + blocks(9, {2, 4})
    patch = diff(text, new, context=1)
    more = "1\n2\n3\n4\n5\n6\n"
    assert apply(patch, more + text) == more + new


def test_a_hunk_that_was_found_exactly_ends_the_search():
    patch = diff(blocks(4), blocks(4, {2}))
    assert apply(patch, blocks(4)) == blocks(4, {2})


def test_the_earlier_of_two_equally_near_places():
    patch = "--- a\n+++ b\n@@ -3 +3 @@\n-x\n+y\n"
    assert apply(patch, "1\nx\n3\nx\n") == "1\ny\n3\nx\n"
    assert apply(patch, "x\n2\n3\n4\n5\nx\n") == "y\n2\n3\n4\n5\nx\n"
    assert apply(patch, "x\n2\n3\n4\nx\n6\n") == "y\n2\n3\n4\nx\n6\n"


def test_a_nearer_place_behind_is_better_than_one_before():
    patch = "--- a\n+++ b\n@@ -4 +4 @@\n-x\n+y\n"
    assert apply(patch, "x\n2\n3\n4\nx\nx\n") == "x\n2\n3\n4\ny\nx\n"
    assert apply(patch, "x\nx\n3\n4\n5\nx\n") == "x\ny\n3\n4\n5\nx\n"


def test_hunks_do_not_overlap():
    patch = "--- a\n+++ b\n@@ -2 +2 @@\n-x\n+x\n@@ -3 +3 @@\n-x\n+z\n"
    assert apply(patch, "x\n2\n3\nx\n") == "x\n2\n3\nz\n"


def test_a_single_place_is_found_wherever_it_is():
    patch = diff("a\nb\nc\n", "a\nB\nc\n")
    far = "".join(f"{number}\n" for number in range(200))
    assert apply(patch, far + "a\nb\nc\n") == far + "a\nB\nc\n"
