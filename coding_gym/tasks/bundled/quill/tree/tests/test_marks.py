import pytest

from quill import Document, PositionError


def marked(text, **positions):
    """A document with marks; those whose names end with an underscore lean right."""
    document = Document(text)
    for name, position in positions.items():
        document.set_mark(name, position, leans="right" if name.endswith("_") else "left")
    return document


def test_marks_move_with_the_text():
    document = marked("one two three", a=2, b=4, c=13)
    document.insert(3, " and")
    assert document.marks == {"a": 2, "b": 8, "c": 17}
    document.delete(0, 2)
    assert document.marks == {"a": 0, "b": 6, "c": 15}


def test_where_marks_lean():
    document = marked("one", a=1, a_=1)
    document.insert(1, "xx")
    assert document.marks == {"a": 1, "a_": 3}


def test_marks_in_what_is_deleted():
    document = marked("abcdef", a=1, b=2, b_=3, c_=5, d=6)
    document.delete(1, 5)
    assert document.marks == {"a": 1, "b": 1, "b_": 1, "c_": 1, "d": 2}


def test_marks_in_what_is_replaced():
    document = marked("abcdef", a=0, b=3, b_=3, c=6)
    document.replace(2, 5, "xy")
    assert document.marks == {"a": 0, "b": 2, "b_": 4, "c": 5}


def test_setting_and_removing_marks():
    document = marked("one", a=1, b=2)
    document.set_mark("a", 3)
    document.remove_mark("b")
    assert document.marks == {"a": 3}
    assert not document.can_undo
    with pytest.raises(KeyError):
        document.remove_mark("b")
    with pytest.raises(PositionError):
        document.set_mark("a", 4)


def test_marks_elsewhere_follow_undo_and_redo():
    document = marked("one two three", a=1, b=9)
    document.replace(4, 7, "2")
    document.undo()
    assert document.marks == {"a": 1, "b": 9}
    document.redo()
    assert document.marks == {"a": 1, "b": 7}
