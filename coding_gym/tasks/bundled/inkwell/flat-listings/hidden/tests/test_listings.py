import pytest

from inkwell import to_html


def listing(code):
    return f"<pre><code>{code}</code></pre>\n"


@pytest.mark.parametrize("blanks", [1, 2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("fence", ["```", "~~~", "`````"])
def test_every_indent_is_kept(fence, blanks):
    line = " " * blanks + "x"
    assert to_html(f"{fence}\nfor:\n{line}\n{fence}") == listing(f"for:\n{line}\n")


def test_each_level_of_a_program_is_kept():
    code = "class A:\n    def f(self):\n        if self:\n            return 1\n\n    x = 2\n"
    assert to_html(f"```\n{code}```") == listing(code)


def test_tabs_become_blanks_and_stay():
    assert to_html("```\nall:\n\tcc\n\t\tld\n```") == listing("all:\n    cc\n        ld\n")


def test_a_language_does_not_matter():
    html = to_html("```yaml\na:\n  - b\n```")
    assert html == '<pre><code class="language-yaml">a:\n  - b\n</code></pre>\n'


@pytest.mark.parametrize("indent", [1, 2, 3])
@pytest.mark.parametrize("blanks", range(7))
def test_no_more_than_the_indent_of_the_fence_is_taken(indent, blanks):
    margin = " " * indent
    code = " " * blanks + "some text"
    expected = " " * max(0, blanks - indent) + "some text\n"
    assert to_html(f"{margin}```\n{code}\n{margin}```") == listing(expected)


def test_text_is_never_cut_off():
    assert to_html("   ~~~\na\nbc\n d\n  e\n   ~~~") == listing("a\nbc\nd\ne\n")


def test_an_open_listing_keeps_its_indent():
    assert to_html("```\n  a\n    b") == listing("  a\n    b\n")


def test_listings_in_quotes_and_lists():
    assert to_html("> ```\n> a\n>   b\n> ```") == (
        f"<blockquote>\n{listing('a' + chr(10) + '  b' + chr(10))}</blockquote>\n"
    )
    assert to_html("1. one\n   ~~~\n   a\n       b\n   ~~~") == (
        "<ol>\n<li>one\n<pre><code>a\n    b\n</code></pre>\n</li>\n</ol>\n"
    )


def test_blank_lines_with_blanks_in_them():
    assert to_html("```\na\n    \nb\n```") == listing("a\n    \nb\n")


def test_a_fence_in_a_fence_keeps_its_indent():
    assert to_html("````\n  ```\n    a\n  ```\n````") == listing("  ```\n    a\n  ```\n")


def test_lines_without_indent():
    assert to_html("```\na\nb\n```") == listing("a\nb\n")


def test_paragraphs_lose_their_indent():
    assert to_html("one\n     two") == "<p>one\ntwo</p>\n"
