import pytest

from inkwell import to_html


@pytest.mark.parametrize("level", [1, 2, 6])
def test_heading_levels(level):
    html = to_html("#" * level + " Getting started ##")
    assert html == f'<h{level} id="getting-started">Getting started</h{level}>\n'


def test_equal_headings_get_ids_of_their_own():
    html = to_html("# Notes\n\n# Notes\n\n# Notes")
    assert 'id="notes"' in html
    assert 'id="notes-1"' in html
    assert 'id="notes-2"' in html
    assert 'id="notes"' in to_html("# Notes"), "documents do not share ids"


def test_paragraphs_are_parted_by_blank_lines():
    assert to_html("one\ntwo\n\n  three") == "<p>one\ntwo</p>\n<p>three</p>\n"


def test_rules():
    assert to_html("above\n* * *\nbelow\n---") == "<p>above</p>\n<hr>\n<p>below</p>\n<hr>\n"


def test_quotes_hold_blocks():
    html = to_html("> # Said\n> something\nlazily\n>\n> - a point")
    assert html == (
        '<blockquote>\n<h1 id="said">Said</h1>\n<p>something\nlazily</p>\n'
        "<ul>\n<li>a point</li>\n</ul>\n</blockquote>\n"
    )


def test_fenced_code_is_kept_as_it_is():
    html = to_html("```python title=x\nif a < b:\n    *go*\n\n    on\n```\nafter")
    assert html == (
        '<pre><code class="language-python">if a &lt; b:\n    *go*\n\n    on\n</code></pre>\n'
        "<p>after</p>\n"
    )


def test_code_keeps_its_own_indent():
    assert to_html("```\n  a\n      b\n```") == "<pre><code>  a\n      b\n</code></pre>\n"
    assert to_html("~~~\n\tc\n~~~") == "<pre><code>    c\n</code></pre>\n"


def test_a_fence_is_not_closed_by_the_other_kind_or_a_shorter_one():
    for fence in ("~~~", "````"):
        assert to_html(f"{fence}\n```\n{fence}") == "<pre><code>```\n</code></pre>\n"


def test_an_open_fence_runs_to_the_end():
    assert to_html("```\ncode\n\nmore") == "<pre><code>code\n\nmore\n</code></pre>\n"


def test_the_indent_of_a_fence_is_taken_from_its_lines():
    assert to_html("  ```\n  a\n    b\n c\n  ```") == "<pre><code>a\n  b\nc\n</code></pre>\n"


def test_tight_list():
    assert to_html("- one\n- two") == "<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n"


def test_blank_lines_make_a_list_loose():
    html = to_html("- one\n\n- two")
    assert html == "<ul>\n<li>\n<p>one</p>\n</li>\n<li>\n<p>two</p>\n</li>\n</ul>\n"


def test_blank_lines_in_code_do_not_make_a_list_loose():
    html = to_html("- one\n  ```\n  a\n\n  b\n  ```\n- two")
    assert html == ("<ul>\n<li>one\n<pre><code>a\n\nb\n</code></pre>\n</li>\n<li>two</li>\n</ul>\n")


def test_nested_lists():
    html = to_html("1. one\n   - inner\n   - more\n2. two")
    assert html == (
        "<ol>\n<li>one\n<ul>\n<li>inner</li>\n<li>more</li>\n</ul>\n</li>\n<li>two</li>\n</ol>\n"
    )


@pytest.mark.parametrize("start", [0, 1, 7])
def test_numbered_lists_keep_their_first_number(start):
    html = to_html(f"{start}. a\n{start + 1}. b")
    opening = "<ol>" if start == 1 else f'<ol start="{start}">'
    assert html == f"{opening}\n<li>a</li>\n<li>b</li>\n</ol>\n"


def test_a_year_at_the_start_of_a_line_is_not_a_list():
    assert to_html("It was written in\n1948. Or so.") == "<p>It was written in\n1948. Or so.</p>\n"
