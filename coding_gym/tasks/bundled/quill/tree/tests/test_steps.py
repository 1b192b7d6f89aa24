import pytest

from quill import Document, GroupError


def typed(document, position, text):
    for offset, character in enumerate(text):
        document.insert(position + offset, character)


def undone(document):
    texts = []
    while document.undo():
        texts.append(document.text)
    return texts


def test_undoing_and_redoing():
    document = Document("one")
    document.insert(3, " two")
    document.delete(0, 1)
    assert undone(document) == ["one two", "one"]
    assert (document.can_undo, document.can_redo) == (False, True)
    assert document.redo()
    assert document.redo()
    assert not document.redo()
    assert document.text == "ne two"


def test_a_new_step_takes_the_place_of_what_could_be_redone():
    document = Document("one")
    document.insert(3, " two")
    document.undo()
    document.insert(3, " three")
    assert not document.can_redo
    assert undone(document) == ["one"]


def test_a_run_is_one_step():
    document = Document("()")
    typed(document, 1, "abc")
    typed(document, 1, "de")
    document.insert(3, "fg")
    document.insert(5, "h")
    assert document.text == "(defghabc)"
    assert undone(document) == ["(defgabc)", "(deabc)", "(abc)", "()"]


def test_undoing_ends_a_run():
    document = Document()
    typed(document, 0, "ab")
    document.insert(0, "more ")
    document.undo()
    document.insert(2, "c")
    assert undone(document) == ["ab", ""]


def test_edits_that_change_nothing_are_no_steps():
    document = Document("one")
    document.insert(1, "")
    document.replace(0, 3, "one")
    with document.group():
        pass
    assert (document.can_undo, document.is_modified) == (False, False)


def test_a_group_is_one_step():
    document = Document("one")
    document.insert(3, "!")
    with document.group():
        document.insert(0, "a ")
        with document.group():
            document.delete(2, 5)
        document.insert(2, "b")
    document.insert(3, "c")
    assert document.text == "a bc!"
    assert undone(document) == ["a b!", "one!", "one"]


def test_what_is_not_possible_in_a_group():
    document = Document("one")
    document.insert(0, "x")
    for method in (document.undo, document.redo, document.save):
        with document.group(), pytest.raises(GroupError):
            method()
    assert document.undo()
    assert document.text == "one"


def test_the_last_steps_are_kept():
    document = Document(limit=3)
    for word in ("one ", "two ", "three ", "four ", "five "):
        document.insert(0, word)
    assert undone(document) == ["four three two one ", "three two one ", "two one "]
    with pytest.raises(ValueError, match="limit"):
        Document(limit=0)


def test_saving():
    document = Document("one")
    assert not document.is_modified
    document.insert(3, " two")
    assert document.is_modified
    assert document.save() == "one two"
    assert not document.is_modified
    document.delete(0, 4)
    assert document.is_modified
    document.undo()
    assert not document.is_modified
    document.undo()
    assert document.is_modified
