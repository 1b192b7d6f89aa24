import pytest

from inkwell import to_html


def inline(text):
    html = to_html(text)
    assert html.startswith("<p>")
    assert html.endswith("</p>\n")
    return html[3:-5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*a* and _b_", "<em>a</em> and <em>b</em>"),
        ("**a** and __b__", "<strong>a</strong> and <strong>b</strong>"),
        ("***a***", "<strong><em>a</em></strong>"),
        ("*a **b** c*", "<em>a <strong>b</strong> c</em>"),
        ("**a *b***", "<strong>a <em>b</em></strong>"),
        ("in*side*word", "in<em>side</em>word"),
        ("snake_case_name", "snake_case_name"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("*open", "*open"),
        ("*a `*` b*", "<em>a <code>*</code> b</em>"),
    ],
    ids=["em", "strong", "both", "nested", "end", "in-word", "snake", "times", "open", "code"],
)
def test_emphasis(text, expected):
    assert inline(text) == expected


def test_code_spans():
    assert inline("`a < b`") == "<code>a &lt; b</code>"
    assert inline("`` a`b ``") == "<code>a`b</code>"
    assert inline("``a`") == "``a`"
    assert inline("`  a  `") == "<code> a </code>"
    assert inline("` a`") == "<code> a</code>"


def test_escapes():
    assert inline(r"\*plain\* \[x\] \q") == r"*plain* [x] \q"


def test_html_is_escaped():
    assert inline('<b> & "c"') == '&lt;b&gt; &amp; "c"'


def test_hard_breaks():
    assert inline("one\\\ntwo\nthree") == "one<br>\ntwo\nthree"


def test_inline_links():
    assert inline("[a *b*](/x)") == '<a href="/x">a <em>b</em></a>'
    assert inline('[a](/x_(y) "it\'s \\"b\\"")') == (
        '<a href="/x_(y)" title="it&#x27;s &quot;b&quot;">a</a>'
    )
    assert inline("[a](<some file.txt>)") == '<a href="some file.txt">a</a>'


def test_reference_links():
    text = "See [the guide][guide], [guide][] or [guide].\n\n[guide]: /g 'The guide'"
    link = '<a href="/g" title="The guide">'
    assert inline(text) == f"See {link}the guide</a>, {link}guide</a> or {link}guide</a>."
    assert inline("[Guide]\n\n[guide]: /g") == '<a href="/g">Guide</a>'


def test_unknown_references_stay_text():
    assert inline("[a][b] and [c]") == "[a][b] and [c]"


def test_the_first_definition_counts():
    assert inline("[a]\n\n[a]: /first\n[a]: /second") == '<a href="/first">a</a>'


def test_definitions_are_found_in_quotes_and_before_use():
    assert to_html("> [a]: <b c>\n\n[a]") == (
        '<blockquote>\n</blockquote>\n<p><a href="b c">a</a></p>\n'
    )
