import pytest

from inkwell import to_html


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("`  a  `", " a "),
        ("`     a     `", "    a    "),
        ("`  a `", " a"),
        ("` a   `", "a  "),
        ("`  a  b  `", " a  b "),
        ("``  `a`  ``", " `a` "),
    ],
    ids=["both", "many", "left", "right", "inside", "backticks"],
)
def test_one_blank_goes_at_each_end(text, code):
    assert to_html(text) == f"<p><code>{code}</code></p>\n"


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003"], ids=["no-break", "em"])
def test_other_blanks_are_text(blank):
    code = f"{blank}a{blank}"
    assert to_html(f"`{code}`") == f"<p><code>{code}</code></p>\n"
    assert to_html(f"` {code} `") == f"<p><code>{code}</code></p>\n"


def test_a_line_break_counts_as_a_blank():
    assert to_html("`\na\n`") == "<p><code>a</code></p>\n"
    assert to_html("` \na \n`") == "<p><code> a </code></p>\n"


def test_blanks_are_kept_everywhere_in_a_document():
    span, html = "`  x  `", "<code> x </code>"
    assert to_html(f"## Use {span} here") == f'<h2 id="use-x-here">Use {html} here</h2>\n'
    assert to_html(f"- **{span}**") == f"<ul>\n<li><strong>{html}</strong></li>\n</ul>\n"
    assert to_html(f"[{span}](/x)") == f'<p><a href="/x">{html}</a></p>\n'
    assert to_html(f"> {span}") == f"<blockquote>\n<p>{html}</p>\n</blockquote>\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("` a `", "a"),
        ("`` ` ``", "`"),
        ("` a`", " a"),
        ("`  a`", "  a"),
        ("`a  `", "a  "),
        ("` `", " "),
        ("`   `", "   "),
        ("`a  b`", "a  b"),
    ],
    ids=["one", "backtick", "left", "left-two", "right-two", "blank", "blanks", "inside"],
)
def test_code_without_blanks_at_both_ends_stays(text, code):
    assert to_html(text) == f"<p><code>{code}</code></p>\n"
