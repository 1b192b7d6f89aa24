import pytest

from quill import Document


class MacroError(Exception):
    pass


def fail(document, *edits):
    """Makes edits (start, end, text) in a group that ends with an exception."""
    with pytest.raises(MacroError), document.group():
        for edit in edits:
            document.replace(*edit)
        raise MacroError


def undone(document):
    texts = []
    while document.undo():
        texts.append(document.text)
    return texts


def redone(document):
    texts = []
    while document.redo():
        texts.append(document.text)
    return texts


EDITS = [(0, 0, "a\nb "), (3, 6, ""), (1, 4, "long\nwords\n"), (0, 2, "x")]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_text_is_what_it_was(count):
    document = Document("one\ntwo\nthree")
    fail(document, *EDITS[:count])
    assert document.text == "one\ntwo\nthree"


def test_lines_are_what_they_were():
    document = Document("one\ntwo\nthree")
    fail(document, *EDITS)
    places = [document.lines.locate(position) for position in (0, 3, 4, 7, 8, 13)]
    assert places == [(0, 0), (0, 3), (1, 0), (1, 3), (2, 0), (2, 5)]
    assert len(document.lines) == 3


def test_listeners_hear_that_it_is_taken_back():
    document = Document("one two")
    copies = ["one two"]
    document.listen(lambda edit: copies.append(edit.applied(copies[-1])))
    fail(document, (0, 3, "1"), (2, 5, "2"))
    document.insert(7, "!")
    assert copies[:3] == ["one two", "1 two", "1 2"]
    assert copies[-1] == document.text == "one two!"


def test_marks_are_where_they_were():
    document = Document("one two three")
    for position in range(14):
        document.set_mark(f"left {position}", position)
        document.set_mark(f"right {position}", position, leans="right")
    before = document.marks
    fail(document, (4, 8, ""), (2, 2, "xyz"), (0, 6, "abc"))
    assert document.marks == before


def test_marks_that_were_set_or_removed():
    document = Document("one two three")
    document.set_mark("a", 5)
    document.set_mark("b", 6, leans="right")
    with pytest.raises(MacroError), document.group():
        document.delete(4, 8)
        document.set_mark("a", 1)
        document.remove_mark("b")
        document.set_mark("c", 2)
        raise MacroError
    assert document.marks == {"a": 5, "b": 6}
    document.insert(6, "_")
    assert document.marks == {"a": 5, "b": 7}


def test_nothing_of_it_can_be_undone_or_redone():
    document = Document("one")
    fail(document, (3, 3, " two"), (0, 1, "O"))
    assert (document.can_undo, document.can_redo) == (False, False)
    assert (document.undo(), document.redo(), document.text) == (False, False, "one")


def test_what_could_be_undone_can_be():
    document = Document("one")
    document.insert(3, " two")
    document.insert(7, " three")
    fail(document, (0, 3, "1"), (2, 5, "2"))
    assert document.text == "one two three"
    assert undone(document) == ["one two", "one"]
    assert redone(document) == ["one two", "one two three"]


def test_what_could_be_redone_can_be():
    document = Document("one")
    document.insert(3, " two")
    document.insert(7, " three")
    document.undo()
    document.undo()
    fail(document, (0, 3, "1"))
    assert document.can_redo
    assert redone(document) == ["one two", "one two three"]


def test_no_step_is_lost_for_it():
    document = Document(limit=2)
    for word in ("one ", "two ", "three "):
        document.insert(0, word)
    fail(document, (0, 0, "four "))
    assert undone(document) == ["two one ", "one "]


def test_it_is_not_modified_by_it():
    document = Document("one")
    document.insert(3, " two")
    document.save()
    fail(document, (0, 3, "1"), (1, 5, ""))
    assert (document.text, document.is_modified) == ("one two", False)


def test_the_saved_state_is_still_found():
    document = Document("one")
    document.insert(3, " two")
    document.save()
    document.undo()
    fail(document, (0, 3, "1"))
    seen = [document.is_modified]
    document.redo()
    seen.append(document.is_modified)
    assert (document.text, seen) == ("one two", [True, False])


def test_an_inner_group_takes_back_its_own_edits():
    document = Document("one")
    with document.group():
        document.insert(3, " two")
        fail(document, (0, 3, "1"), (1, 1, ","))
        document.insert(7, " three")
    assert document.text == "one two three"
    assert undone(document) == ["one"]
    assert redone(document) == ["one two three"]


def test_an_inner_group_that_fails_alone():
    document = Document("one")
    document.insert(3, " two")
    document.undo()
    with document.group():
        fail(document, (0, 3, "1"))
    assert (document.text, document.can_undo) == ("one", False)
    assert redone(document) == ["one two"]


def test_an_outer_group_takes_back_the_edits_of_inner_ones():
    document = Document("tea and tea")
    document.insert(11, "!")
    with pytest.raises(MacroError), document.group():
        document.insert(0, "more ")
        document.replace_all("tea", "pie")
        fail(document, (0, 4, "less"))
        with document.group():
            document.delete(0, 5)
        raise MacroError
    assert document.text == "tea and tea!"
    assert undone(document) == ["tea and tea"]


def test_an_exception_that_passes_through_several_groups():
    document = Document("one")
    document.insert(3, "!")
    with pytest.raises(MacroError), document.group():
        document.insert(0, "a ")
        with document.group():
            document.insert(0, "b ")
            with document.group():
                document.insert(0, "c ")
                raise MacroError
    assert document.text == "one!"
    assert undone(document) == ["one"]


def test_marks_and_earlier_steps():
    document = Document("one two three")
    document.set_mark("a", 5)
    document.delete(4, 8)
    fail(document, (2, 6, ""), (0, 0, "zero "))
    document.undo()
    assert (document.text, document.marks) == ("one two three", {"a": 5})


def test_positions_that_are_not_in_the_text():
    document = Document("one")
    with pytest.raises(IndexError), document.group():
        document.insert(3, " two")
        document.delete(5, 20)
    assert (document.text, document.can_undo) == ("one", False)


def test_a_group_that_fails_without_edits():
    document = Document("one")
    document.insert(3, " two")
    document.insert(7, " three")
    document.undo()
    fail(document)
    assert (document.text, document.can_undo, document.can_redo) == ("one two", True, True)
    assert redone(document) == ["one two three"]


def test_an_exception_that_is_caught_in_the_block():
    document = Document("one")
    with document.group():
        document.insert(3, " two")
        with pytest.raises(IndexError):
            document.delete(5, 20)
    assert document.text == "one two"
    assert undone(document) == ["one"]


def test_a_group_that_does_not_fail():
    document = Document("one")
    document.insert(3, " two")
    document.undo()
    with document.group():
        document.insert(0, "a ")
        document.insert(0, "b ")
    assert (document.text, document.can_redo, document.is_modified) == ("b a one", False, True)
    assert undone(document) == ["one"]


def test_the_document_goes_on():
    document = Document("one")
    fail(document)
    document.insert(3, " two")
    document.insert(7, " three")
    assert undone(document) == ["one two", "one"]
