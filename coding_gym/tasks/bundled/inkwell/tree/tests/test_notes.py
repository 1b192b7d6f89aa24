from inkwell import to_html


def test_a_note():
    html = to_html("A claim[^why].\n\n[^why]: For a reason,\n  which may *take* lines.")
    assert html == (
        '<p>A claim<sup id="fnref:1"><a href="#fn:1">1</a></sup>.</p>\n'
        '<ol class="notes">\n<li id="fn:1">For a reason,\nwhich may <em>take</em> lines. '
        '<a href="#fnref:1">back</a></li>\n</ol>\n'
    )


def test_notes_are_numbered_by_their_first_use():
    html = to_html("[^b]: B\n[^a]: A\n[^c]: C\n\n- one[^a]\n- two[^b] and[^ A ]\n")
    assert html == (
        '<ul>\n<li>one<sup id="fnref:1"><a href="#fn:1">1</a></sup></li>\n'
        '<li>two<sup id="fnref:2"><a href="#fn:2">2</a></sup> '
        'and<sup id="fnref:1-2"><a href="#fn:1">1</a></sup></li>\n</ul>\n'
        '<ol class="notes">\n'
        '<li id="fn:1">A <a href="#fnref:1">back</a> <a href="#fnref:1-2">back</a></li>\n'
        '<li id="fn:2">B <a href="#fnref:2">back</a></li>\n</ol>\n'
    )


def test_notes_may_be_defined_in_quotes():
    html = to_html("> [^a]: first\n> on\n\nx[^a]\n\n[^a]: second")
    assert '<li id="fn:1">first\non <a href="#fnref:1">back</a></li>' in html
    assert "second" not in html


def test_what_is_no_note_stays_text():
    assert to_html("x[^a] `[^b]` \\[^b]\n\n[^b]: B") == "<p>x[^a] <code>[^b]</code> [^b]</p>\n"
