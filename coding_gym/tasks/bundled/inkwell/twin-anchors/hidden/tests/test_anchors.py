import re

import pytest

from inkwell import to_html


def ids(*titles, text="# {}\n\n"):
    return re.findall(r'<h\d id="(.*?)">', to_html("".join(text.format(title) for title in titles)))


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        (["A", "A", "A 1"], ["a", "a-1", "a-1-1"]),
        (["A 1", "A", "A"], ["a-1", "a", "a-2"]),
        (["A", "A 1", "A"], ["a", "a-1", "a-2"]),
        (["A", "A", "A 1", "A 1"], ["a", "a-1", "a-1-1", "a-1-2"]),
        (["A 1", "A 2", "A", "A", "A"], ["a-1", "a-2", "a", "a-3", "a-4"]),
        (["A 2", "A", "A", "A"], ["a-2", "a", "a-1", "a-3"]),
        (["A", "A", "A 1", "A 1 1"], ["a", "a-1", "a-1-1", "a-1-1-1"]),
        (["A 1 1", "A", "A", "A 1"], ["a-1-1", "a", "a-1", "a-1-2"]),
        (["?", "!", "Section 1"], ["section", "section-1", "section-1-1"]),
        (["a-1", "*A*", "`A`", "[A](/x)"], ["a-1", "a", "a-2", "a-3"]),
    ],
    ids=[
        *("behind", "before", "between", "twice", "many", "gap"),
        *("deeper", "deeper-before", "no-letters", "markup"),
    ],
)
def test_every_heading_has_an_id_of_its_own(titles, expected):
    assert ids(*titles) == expected


def test_the_level_does_not_matter():
    html = to_html("# Meeting\n### Meeting\n## Meeting 1")
    assert re.findall(r'id="(.*?)"', html) == ["meeting", "meeting-1", "meeting-1-1"]


def test_headings_in_quotes_and_lists_are_headings_of_the_document():
    html = to_html("# Meeting\n\n> # Meeting\n\n- # Meeting 1")
    assert re.findall(r'id="(.*?)"', html) == ["meeting", "meeting-1", "meeting-1-1"]


def test_a_page_of_many_headings():
    titles = [f"{name} {number}" for number in (1, 2, 1) for name in ("N", "N 1")] + ["N"] * 5
    found = ids(*titles)
    assert sorted(set(found)) == sorted(found)


def test_other_headings_are_numbered_as_before():
    assert ids("A", "A", "B", "A") == ["a", "a-1", "b", "a-2"]
    assert ids("Big *news*!", "big news") == ["big-news", "big-news-1"]


def test_documents_do_not_share_ids():
    assert [ids("A", "A 1"), ids("A 1", "A")] == [["a", "a-1"], ["a-1", "a"]]
