import pytest

from inkwell import to_html


def code(html):
    opening, closing = "<pre><code>", "</code></pre>\n"
    assert html.startswith(opening)
    assert html.endswith(closing)
    return html[len(opening) : -len(closing)]


@pytest.mark.parametrize("fence", ["````", "~~~~"], ids=["backticks", "tildes"])
def test_a_shorter_run_is_part_of_the_code(fence):
    short = fence[:3]
    inner = f"{short}\nx = 1\n{short}\n"
    assert code(to_html(f"{fence}\n{inner}{fence}")) == inner


def test_every_shorter_run_is_part_of_the_code():
    assert code(to_html("``````\n```\n````\n`````\n``````")) == "```\n````\n`````\n"


@pytest.mark.parametrize("end", ["```", "`````", "``````````  "], ids=["equal", "longer", "padded"])
def test_an_equal_or_longer_run_closes(end):
    assert to_html(f"```\na\n{end}\nb") == "<pre><code>a\n</code></pre>\n<p>b</p>\n"


def test_a_run_with_text_behind_it_does_not_close():
    assert code(to_html("````\n```` x\n````")) == "```` x\n"


def test_the_text_after_a_nested_example_is_read_as_markdown():
    html = to_html("````markdown\n```python\npass\n```\n````\n\n*after*")
    assert html == (
        '<pre><code class="language-markdown">```python\npass\n```\n</code></pre>\n'
        "<p><em>after</em></p>\n"
    )


def test_in_a_quote():
    assert to_html("> ~~~~\n> ~~~\n> a\n> ~~~~\n> b") == (
        "<blockquote>\n<pre><code>~~~\na\n</code></pre>\n<p>b</p>\n</blockquote>\n"
    )


def test_blank_lines_of_a_nested_example_leave_a_list_tight():
    html = to_html("- see\n  ````\n  ```\n\n  a\n  ```\n  ````\n- done")
    assert html == (
        "<ul>\n<li>see\n<pre><code>```\n\na\n```\n</code></pre>\n</li>\n<li>done</li>\n</ul>\n"
    )


def test_an_unclosed_longer_fence_runs_to_the_end():
    assert code(to_html("`````\na\n````\n\nb")) == "a\n````\n\nb\n"
