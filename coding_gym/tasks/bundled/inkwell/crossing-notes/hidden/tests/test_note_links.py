import re

import pytest

from inkwell import to_html


def place(number, count=1):
    name = f"fnref:{number}" if count == 1 else f"fnref:{number}-{count}"
    return f'<sup id="{name}"><a href="#fn:{number}">{number}</a></sup>'


def note(number, text, places=1):
    names = [f"fnref:{number}", *(f"fnref:{number}-{count}" for count in range(2, places + 1))]
    links = " ".join(f'<a href="#{name}">back</a>' for name in names)
    return f'<li id="fn:{number}">{text} {links}</li>\n'


def page(text, *notes):
    return f'{text}\n<ol class="notes">\n{"".join(notes)}</ol>\n'


def test_a_note_of_a_heading_is_referred_to_once():
    html = to_html("# The harbour[^map]\n\n[^map]: See the map.")
    heading = f'<h1 id="the-harbour">The harbour{place(1)}</h1>'
    assert html == page(heading, note(1, "See the map."))


def test_headings_and_text_refer_to_the_same_note():
    html = to_html("a[^n]\n\n## b[^n]\n\nc[^n]\n\n> ### d[^n]\n\n[^n]: N")
    assert re.findall(r'<sup id="(.*?)">', html) == [
        "fnref:1",
        "fnref:1-2",
        "fnref:1-3",
        "fnref:1-4",
    ]
    assert html.endswith(page("", note(1, "N", 4))[1:])


def test_headings_that_are_called_the_same():
    html = to_html("# A[^x]\n# A[^y]\n\n[^y]: Y\n[^x]: X")
    text = f'<h1 id="a">A{place(1)}</h1>\n<h1 id="a-1">A{place(2)}</h1>'
    assert html == page(text, note(1, "X"), note(2, "Y"))


def test_a_note_that_only_a_note_refers_to():
    html = to_html("Built.[^built]\n\n[^built]: So it says.[^more]\n[^more]: Printed.")
    assert html == page(
        f"<p>Built.{place(1)}</p>", note(1, f"So it says.{place(2)}"), note(2, "Printed.")
    )


def test_notes_over_several_steps():
    html = to_html("[^c]: C[^d]\n[^a]: A[^b]\n[^b]: B[^c]\n[^d]: D\n\nx[^a]")
    assert html == page(
        f"<p>x{place(1)}</p>",
        note(1, f"A{place(2)}"),
        note(2, f"B{place(3)}"),
        note(3, f"C{place(4)}"),
        note(4, "D"),
    )


def test_notes_of_the_text_come_before_those_of_notes():
    html = to_html("x[^a] y[^b]\n\n[^a]: A[^c] [^d]\n[^b]: B[^d]\n[^c]: C\n[^d]: D")
    assert html == page(
        f"<p>x{place(1)} y{place(2)}</p>",
        note(1, f"A{place(3)} {place(4)}"),
        note(2, f"B{place(4, 2)}"),
        note(3, "C"),
        note(4, "D", 2),
    )


def test_a_later_note_refers_to_an_earlier_one():
    html = to_html("x[^a] y[^b]\n\n[^a]: A\n[^b]: As said in[^a]")
    assert html == page(
        f"<p>x{place(1)} y{place(2)}</p>", note(1, "A", 2), note(2, f"As said in{place(1, 2)}")
    )


def test_a_note_deep_down_refers_to_the_first_one():
    html = to_html("x[^a]\n\n[^a]: A[^b]\n[^b]: B[^c]\n[^c]: C[^a] [^b]")
    assert html == page(
        f"<p>x{place(1)}</p>",
        note(1, f"A{place(2)}", 2),
        note(2, f"B{place(3)}", 2),
        note(3, f"C{place(1, 2)} {place(2, 2)}"),
    )


def test_two_notes_refer_to_each_other():
    html = to_html("# x[^a]\n\n[^a]: A[^b]\n[^b]: B[^a]")
    assert html == page(
        f'<h1 id="x">x{place(1)}</h1>',
        note(1, f"A{place(2)}", 2),
        note(2, f"B{place(1, 2)}"),
    )


def test_a_note_refers_to_itself():
    html = to_html("x[^a]\n\n[^a]: A[^a]")
    assert html == page(f"<p>x{place(1)}</p>", note(1, f"A{place(1, 2)}", 2))


def test_what_nothing_on_the_page_refers_to_is_left_out():
    html = to_html("# x[^a]\n\n[^a]: A\n[^b]: B[^c]\n[^c]: C[^b] [^a]")
    assert html == page(f'<h1 id="x">x{place(1)}</h1>', note(1, "A"))
    assert to_html("x\n\n[^b]: B[^b]") == "<p>x</p>\n"


@pytest.mark.parametrize("before", ["", "x[^b]\n\n"], ids=["heading-first", "text-first"])
def test_links_and_places_belong_together(before):
    html = to_html(
        before + "# A[^a]\n\n- tight[^b]\n- ## B *[^c]*\n\n"
        "[^a]: A[^e][^b]\n[^b]: B\n[^c]: **C[^d]**\n[^d]: D[^a]\n[^e]: E[^a][^e]\n"
    )
    links = re.findall(r'<a href="#(.*?)"', html)
    ids = re.findall(r'<(?:sup|li) id="(.*?)"', html)
    assert len(ids) == len(set(ids))
    assert set(links) == set(ids)
    assert [link for link in links if link.startswith("fn:")] == [
        re.sub(r"fnref:(\d+).*", r"fn:\1", name) for name in ids if name.startswith("fnref:")
    ]


def test_notes_in_text_alone():
    html = to_html("x[^a] *y[^b]* z[^a]\n\n[^a]: A\n[^b]: B")
    text = f"<p>x{place(1)} <em>y{place(2)}</em> z{place(1, 2)}</p>"
    assert html == page(text, note(1, "A", 2), note(2, "B"))
