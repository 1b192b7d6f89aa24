import pytest

from quill import Document


def typed(document, text):
    for character in text:
        document.insert(len(document.text), character)


def with_steps(*words, **options):
    document = Document(**options)
    for word in words:
        document.insert(len(document.text), word)
    return document


@pytest.mark.parametrize("count", [1, 2, 3])
def test_other_edits_in_place_of_undone_ones(count):
    document = with_steps("one ", "two ", "three ", "four ")
    document.save()
    for _ in range(count):
        document.undo()
    for _ in range(count):
        document.insert(0, "other ")
    assert (document.is_modified, document.can_redo) == (True, False)


def test_other_edits_in_place_of_all_edits():
    document = with_steps("one ", "two ")
    document.save()
    while document.undo():
        pass
    seen = [document.is_modified]
    for word in ("1 ", "2 ", "3 "):
        document.insert(0, word)
        seen.append(document.is_modified)
    assert seen == [True] * 4


def test_a_saved_state_that_was_replaced_is_not_reached_again():
    document = with_steps("one ", "two ", "three ")
    document.save()
    document.undo()
    document.insert(0, "other ")
    document.insert(0, "another ")
    seen = []
    while document.undo():
        seen.append((document.text, document.is_modified))
    assert seen == [("other one two ", True), ("one two ", True), ("one ", True), ("", True)]


def test_typing_on_after_saving():
    document = with_steps("Dear ")
    typed(document, "Ada")
    saved = document.save()
    typed(document, ", hello")
    assert (document.is_modified, saved) == (True, "Dear Ada")


def test_undoing_what_was_typed_after_saving():
    document = with_steps("Dear ")
    typed(document, "Ada")
    document.save()
    typed(document, ", hello")
    seen = []
    while document.undo():
        seen.append((document.text, document.is_modified))
    assert seen == [("Dear Ada", False), ("Dear ", True), ("", True)]


def test_saving_often_while_typing():
    document = Document()
    saved = []
    for part in ("one", " two", " three"):
        typed(document, part)
        saved.append(document.save())
    seen = [(document.text, document.is_modified)]
    while document.undo():
        seen.append((document.text, document.is_modified))
    assert seen == [(saved[2], False), (saved[1], True), (saved[0], True), ("", True)]


def test_typing_on_after_saving_something_unchanged():
    document = Document()
    typed(document, "ab")
    document.save()
    document.save()
    typed(document, "c")
    assert document.is_modified is True
    document.undo()
    assert (document.text, document.is_modified) == ("ab", False)


def test_edits_beyond_what_is_kept():
    document = with_steps("a", "bb", "cc", limit=3)
    document.save()
    seen = []
    for word in ("dd", "ee", "ff", "gg"):
        document.insert(0, word)
        seen.append(document.is_modified)
    assert seen == [True] * 4


def test_the_beginning_is_not_reached_any_more():
    document = with_steps("one ", "two ", "three ", "four ", limit=2)
    while document.undo():
        pass
    assert (document.text, document.is_modified) == ("one two ", True)


def test_a_saved_state_with_nothing_before_it_that_is_kept():
    document = with_steps("one ", "two ", limit=2)
    document.save()
    for word in ("three ", "four "):
        document.insert(len(document.text), word)
    seen = [document.is_modified]
    while document.undo():
        seen.append(document.is_modified)
    assert (document.text, seen) == ("one two ", [True, True, False])


def test_a_saved_state_that_is_not_kept():
    document = with_steps("one ", limit=2)
    document.save()
    for word in ("two ", "three ", "four "):
        document.insert(len(document.text), word)
    seen = [document.is_modified]
    while document.undo():
        seen.append(document.is_modified)
    assert (document.text, seen) == ("one two ", [True] * 3)


def test_groups_in_place_of_undone_steps():
    document = with_steps("one ", "two ")
    document.save()
    document.undo()
    with document.group():
        document.insert(0, "x")
        document.delete(1, 3)
    assert (document.text, document.is_modified) == ("xe ", True)


def test_going_away_and_coming_back():
    document = with_steps("one ", "two ", "three ")
    document.undo()
    document.save()
    seen = []
    for move in (document.redo, document.undo, document.undo, document.redo):
        move()
        seen.append(document.is_modified)
    assert seen == [True, False, True, False]


def test_the_beginning_is_saved():
    document = with_steps("one ", "two ")
    seen = [document.is_modified]
    while document.undo():
        seen.append(document.is_modified)
    assert seen == [True, True, False]


def test_runs_go_on_where_nothing_is_saved():
    document = Document()
    typed(document, "one")
    assert document.is_modified
    typed(document, " two")
    document.undo()
    assert (document.text, document.is_modified) == ("", False)


def test_marks_are_not_saved():
    document = with_steps("one ")
    document.save()
    document.set_mark("here", 2)
    assert document.is_modified is False
