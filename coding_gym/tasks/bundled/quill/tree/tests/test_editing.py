import pytest

from quill import Document, PositionError


def test_edits():
    document = Document("green tea")
    document.insert(9, "!")
    document.delete(0, 6)
    document.replace(0, 1, "pe")
    assert document.text == "peea!"


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (2, 6), (6, 6)])
def test_positions_that_are_not_in_the_text(start, end):
    document = Document("green")
    with pytest.raises(PositionError):
        document.replace(start, end, "x")
    assert (document.text, document.can_undo) == ("green", False)


def test_lines_and_columns():
    document = Document("one\n\nthree\n")
    places = [(0, 0), (0, 3), (1, 0), (2, 0), (2, 5), (3, 0)]
    positions = [0, 3, 4, 5, 10, 11]
    assert [document.lines.locate(position) for position in positions] == places
    assert [document.lines.position(*place) for place in places] == positions
    assert len(document.lines) == 4


def test_lines_follow_edits():
    document = Document("one\ntwo\nthree")
    document.insert(5, "\n\n")
    document.delete(2, 4)
    document.replace(3, 5, "x\ny\n")
    fresh = Document(document.text)
    assert len(document.lines) == len(fresh.lines)
    for position in range(len(document.text) + 1):
        assert document.lines.locate(position) == fresh.lines.locate(position)


@pytest.mark.parametrize("place", [(0, 4), (2, 1), (3, 0), (-1, 0), (0, -1)])
def test_lines_and_columns_that_are_not_in_the_text(place):
    with pytest.raises(PositionError):
        Document("one\ntwo\n").lines.position(*place)


def test_finding():
    document = Document("Tea, team, TEA aaa")
    assert document.find("tea") == [(5, 8)]
    assert document.find("tea", ignore_case=True) == [(0, 3), (5, 8), (11, 14)]
    assert document.find("tea", ignore_case=True, whole_words=True) == [(0, 3), (11, 14)]
    assert document.find("aa") == [(15, 17)]
    assert document.find(".") == []
    with pytest.raises(ValueError, match="empty"):
        document.find("")


def test_replacing_all():
    document = Document("tea and Tea")
    assert document.replace_all("tea", "pie", ignore_case=True) == 2
    assert document.text == "pie and pie"
    assert document.replace_all("tea", "pie") == 0
    assert document.undo()
    assert document.text == "tea and Tea"
    assert not document.can_undo


def test_listeners_hear_all_edits():
    document = Document("one two")
    heard = []
    document.listen(heard.append)
    document.insert(3, ",")
    with document.group():
        document.delete(0, 3)
        document.insert(0, "1")
    document.insert(2, "")
    document.undo()
    document.redo()
    text = "one two"
    for edit in heard:
        text = edit.applied(text)
    assert text == document.text == "1, two"
    assert len(heard) == 7
