import pytest

from quill import Document


@pytest.mark.parametrize(
    ("text", "wanted", "by", "expected"),
    [
        ("Al met Al, and Al left.", "Al", "Alfred", "Alfred met Alfred, and Alfred left."),
        ("Alfred met Alfred and Alfred.", "Alfred", "Al", "Al met Al and Al."),
        ("a, b, c, d", ", ", "", "abcd"),
        ("aaaa", "aa", "b", "bb"),
        ("one\ntwo\nthree", "\n", "\n\n", "one\n\ntwo\n\nthree"),
        ("-x-x-", "x", "[x]", "-[x]-[x]-"),
        ("tttt", "t", "tt", "tttttttt"),
        ("a.b.c", ".", "\\1", "a\\1b\\1c"),
    ],
    ids=["longer", "shorter", "nothing", "touching", "lines", "around", "itself", "signs"],
)
def test_all_of_it_is_replaced(text, wanted, by, expected):
    document = Document(text)
    count = document.replace_all(wanted, by)
    found = (document.text, count, document.can_undo)
    assert found == (expected, text.count(wanted), True)


def test_what_is_found_may_differ_in_case():
    document = Document("Tea, TEA and team, tea")
    count = document.replace_all("tea", "some coffee", ignore_case=True, whole_words=True)
    expected = "some coffee, some coffee and team, some coffee"
    assert (document.text, count) == (expected, 3)


def test_it_is_one_step():
    document = Document("no, no, no")
    document.insert(10, "!")
    document.replace_all("no", "never")
    texts = [document.text]
    while document.undo():
        texts.append(document.text)
    while document.redo():
        texts.append(document.text)
    never, no = "never, never, never!", "no, no, no!"
    assert texts == [never, no, "no, no, no", no, never]


def test_it_may_be_part_of_a_step():
    document = Document("a-b-c")
    with document.group():
        counts = [document.replace_all("-", " - "), document.replace_all("b", "bee")]
    assert (document.text, counts) == ("a - bee - c", [2, 1])
    assert document.undo()
    assert (document.text, document.can_undo) == ("a-b-c", False)


def test_marks_between_stay_at_their_words():
    document = Document("Al (one) Al (two) Al (three)")
    for name in ("one", "two", "three"):
        document.set_mark(name, document.text.index(name))
    document.replace_all("Al", "Alfred")
    places = {name: document.text.find(name) for name in ("one", "two", "three")}
    assert (document.text.count("Alfred ("), document.marks) == (3, places)


def test_lines_are_right_afterwards():
    document = Document("a;b\nc;d\ne;f")
    document.replace_all(";", ";\n")
    assert document.text == "a;\nb\nc;\nd\ne;\nf"
    fresh = Document(document.text).lines
    places = [document.lines.locate(position) for position in range(len(document.text) + 1)]
    assert places == [fresh.locate(position) for position in range(len(document.text) + 1)]


def test_listeners_have_the_text():
    copies = ["x.x.x"]
    document = Document("x.x.x")
    document.listen(lambda edit: copies.append(edit.applied(copies[-1])))
    document.replace_all("x", "long")
    assert copies[-1] == document.text == "long.long.long"


def test_what_comes_once():
    document = Document("one two three")
    assert (document.replace_all("two", "twenty-two"), document.text) == (1, "one twenty-two three")


def test_texts_of_the_same_length():
    document = Document("one two one")
    assert (document.replace_all("one", "six"), document.text) == (2, "six two six")


def test_what_is_not_found():
    document = Document("one two")
    assert (document.replace_all("three", "3"), document.text) == (0, "one two")
    assert not document.can_undo
