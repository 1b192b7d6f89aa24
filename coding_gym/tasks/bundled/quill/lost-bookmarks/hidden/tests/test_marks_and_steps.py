import pytest

from quill import Document

TEXT = "one two three four"


def marked(text, **positions):
    """A document with marks; those whose names end with an underscore lean right."""
    document = Document(text)
    for name, position in positions.items():
        document.set_mark(name, position, leans="right" if name.endswith("_") else "left")
    return document


def everywhere(text):
    """A document with two marks at each position."""
    return marked(text, **{f"at{i}{lean}": i for i in range(len(text) + 1) for lean in ("", "_")})


EDITS = {
    "deleted": lambda document: document.delete(4, 13),
    "cleared": lambda document: document.delete(0, 18),
    "inserted": lambda document: document.insert(7, " and a half,"),
    "replaced": lambda document: document.replace(3, 14, " five or six "),
    "multiplied": lambda document: document.replace_all("o", "ooo"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_undoing_puts_all_marks_back(edit):
    document = everywhere(TEXT)
    before = document.marks
    edit(document)
    document.undo()
    assert (document.marks, document.can_redo) == (before, True)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_redoing_puts_all_marks_where_they_were(edit):
    document = everywhere(TEXT)
    edit(document)
    after = document.marks
    document.undo()
    document.redo()
    assert (document.marks, document.can_redo) == (after, False)


def test_to_and_fro():
    document = marked(TEXT, a=5, b_=4, c=13, d_=9)
    document.delete(4, 13)
    document.insert(4, "2, 3")
    states = {document.text: document.marks}
    while document.undo():
        states[document.text] = document.marks
    assert states[TEXT] == {"a": 5, "b_": 4, "c": 13, "d_": 9}
    for move in (document.redo, document.undo, document.redo):
        while move():
            assert document.marks == states[document.text]


def test_marks_in_what_was_inserted_are_there_again_after_redoing():
    document = Document("one four")
    document.insert(4, "two three ")
    document.set_mark("two", 4)
    document.set_mark("three", 8)
    document.undo()
    assert document.marks == {"two": 4, "three": 4}
    document.redo()
    assert document.marks == {"two": 4, "three": 8}


def test_several_steps():
    document = marked(TEXT, a=2, b=6, c=10, d=16)
    seen = []
    for start, end in ((8, 13), (4, 8), (0, 4), (0, 2)):
        seen.append(document.marks)
        document.delete(start, end)
    assert document.marks == dict.fromkeys("abcd", 0) | {"d": 1}
    found = []
    while document.undo():
        found.append(document.marks)
    assert found == seen[::-1]


def test_a_run():
    document = marked("()", a=0, b_=1, c=1)
    for position, character in enumerate("abc", start=1):
        document.insert(position, character)
    document.set_mark("d", 2)
    document.set_mark("e_", 4, leans="right")
    assert document.marks == {"a": 0, "b_": 4, "c": 1, "d": 2, "e_": 4}
    document.undo()
    assert document.marks == {"a": 0, "b_": 1, "c": 1, "d": 1, "e_": 1}
    document.redo()
    assert document.marks == {"a": 0, "b_": 4, "c": 1, "d": 2, "e_": 4}


def test_a_group_whose_edits_touch_the_same_marks():
    document = everywhere(TEXT)
    before = document.marks
    with document.group():
        document.delete(4, 8)
        with document.group():
            document.insert(4, "2 ")
            document.delete(2, 9)
        document.replace(0, 4, "")
    after = document.marks
    document.undo()
    assert (document.text, document.marks) == (TEXT, before)
    document.redo()
    assert document.marks == after


def test_marks_that_were_set_since_then():
    document = marked(TEXT, a=5, b=6, c=10)
    document.delete(4, 13)
    document.set_mark("b", 1)
    document.set_mark("new", 7)
    document.undo()
    assert document.marks == {"a": 5, "b": 1, "c": 10, "new": 16}


def test_marks_that_were_set_to_where_they_were_already():
    document = marked(TEXT, a=5, b=6, b_=7)
    document.delete(4, 13)
    document.set_mark("b", 4)
    document.set_mark("b_", 4, leans="right")
    document.undo()
    assert document.marks == {"a": 5, "b": 4, "b_": 13}


def test_marks_that_were_set_between_two_steps():
    document = marked(TEXT, a=5, b=5)
    document.delete(4, 8)
    document.set_mark("b", 6)
    document.delete(4, 10)
    document.undo()
    assert document.marks == {"a": 4, "b": 6}
    document.undo()
    assert document.marks == {"a": 5, "b": 10}


def test_marks_that_were_set_between_undoing_and_redoing():
    document = marked(TEXT, a=5, b=6)
    document.delete(4, 13)
    document.undo()
    document.set_mark("b", 10)
    document.redo()
    assert document.marks == {"a": 4, "b": 4}
    document.undo()
    assert document.marks == {"a": 5, "b": 10}


def test_marks_that_were_removed_since_then():
    document = marked(TEXT, a=5, b=6, c=7)
    document.delete(4, 13)
    document.remove_mark("b")
    document.remove_mark("c")
    document.set_mark("c", 0)
    document.undo()
    assert document.marks == {"a": 5, "c": 0}


def test_marks_elsewhere():
    document = marked(TEXT, a=0, b=3, c=14, d=18)
    document.replace(4, 13, "2")
    assert document.marks == {"a": 0, "b": 3, "c": 6, "d": 10}
    document.undo()
    assert document.marks == {"a": 0, "b": 3, "c": 14, "d": 18}
    document.redo()
    assert document.marks == {"a": 0, "b": 3, "c": 6, "d": 10}


def test_edits_move_marks_as_ever():
    document = marked("abcdef", a=1, b=3, b_=3, c=6)
    document.replace(2, 5, "xy")
    assert document.marks == {"a": 1, "b": 2, "b_": 4, "c": 5}


def test_only_marks_that_are_not_there_any_more():
    document = marked(TEXT, a=5)
    document.delete(4, 13)
    document.remove_mark("a")
    document.undo()
    assert (document.text, document.marks) == (TEXT, {})


def test_a_group_that_fails_leaves_marks_where_they_were():
    document = everywhere(TEXT)
    before = document.marks
    with pytest.raises(KeyError), document.group():
        document.delete(2, 9)
        raise KeyError
    assert (document.text, document.marks) == (TEXT, before)
